import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.GtidEventData;
import com.github.shyiko.mysql.binlog.event.TransactionPayloadEventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import java.io.File;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;

/**
 * Decodes a binlog with mysql-binlog-connector-java, touches every value, and prints the line that
 * `holdfast_benches::pass` describes, for the last of its passes: the earlier ones warm the JVM.
 */
public final class JavaPeer {
    private long transactions;
    private long rows;
    private long images;
    private long cells;
    private int sink;

    public static void main(String[] arguments) throws Exception {
        File file = new File(arguments[0]);
        JavaPeer last = null;
        double seconds = 0;
        double cpu = 0;
        // At least three passes and four seconds to warm up.
        long begin = System.nanoTime();
        for (int pass = 0; pass < 3 || System.nanoTime() - begin < 4_000_000_000L; pass++) {
            last = new JavaPeer();
            long started = System.nanoTime();
            long cpuStarted = cpuNanos();
            last.read(file);
            seconds = (System.nanoTime() - started) / 1e9;
            cpu = (cpuNanos() - cpuStarted) / 1e9;
        }
        System.out.printf("%.6f %.6f %d %d %d %d%n", seconds, cpu, last.transactions, last.rows, last.images, last.cells);
    }

    /** Of the whole process: garbage collection is part of the work. */
    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private void read(File file) throws Exception {
        EventDeserializer deserializer = new EventDeserializer();
        deserializer.setCompatibilityMode(EventDeserializer.CompatibilityMode.DATE_AND_TIME_AS_LONG_MICRO);
        try (BinaryLogFileReader reader = new BinaryLogFileReader(file, deserializer)) {
            for (Event event; (event = reader.readEvent()) != null;) {
                count(event.getData());
            }
        }
    }

    private void count(EventData data) {
        if (data instanceof GtidEventData) {
            transactions++;
        } else if (data instanceof WriteRowsEventData) {
            for (Serializable[] row : ((WriteRowsEventData) data).getRows()) {
                rows++;
                image(row);
            }
        } else if (data instanceof DeleteRowsEventData) {
            for (Serializable[] row : ((DeleteRowsEventData) data).getRows()) {
                rows++;
                image(row);
            }
        } else if (data instanceof UpdateRowsEventData) {
            List<Map.Entry<Serializable[], Serializable[]>> updates = ((UpdateRowsEventData) data).getRows();
            for (Map.Entry<Serializable[], Serializable[]> row : updates) {
                rows++;
                image(row.getKey());
                image(row.getValue());
            }
        } else if (data instanceof TransactionPayloadEventData) {
            for (Event event : ((TransactionPayloadEventData) data).getUncompressedEvents()) {
                count(event.getData());
            }
        }
    }

    private void image(Serializable[] values) {
        images++;
        for (Serializable value : values) {
            cells++;
            sink += value == null ? 0 : System.identityHashCode(value.getClass());
        }
    }
}
