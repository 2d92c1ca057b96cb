import io.debezium.config.Configuration;
import io.debezium.connector.mysql.antlr.MySqlAntlrDdlParser;
import io.debezium.connector.mysql.gtid.MySqlGtidSetFactory;
import io.debezium.connector.mysql.history.MySqlHistoryRecordComparator;
import io.debezium.document.DocumentReader;
import io.debezium.document.Document;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.Tables;
import io.debezium.relational.history.SchemaHistoryListener;
import io.debezium.storage.file.history.FileSchemaHistory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;

/**
 * Debezium's own recovery of a schema history in a file, without an engine around it.
 *
 * <p>{@code Recovery FILE SERVER OFFSET} prints the seconds from opening the file to the recovered tables, the CPU
 * seconds of it, the number of tables, a checksum over their columns, and the peak of the resident memory in kB, each on a line.
 */
public final class Recovery {
    private Recovery() {
    }

    public static void main(String[] args) throws Exception {
        Configuration config = Configuration.create()
            .with("schema.history.internal.file.filename", args[0])
            .with("schema.history.internal.name", "recovery")
            .build();
        Map<String, Object> position = new HashMap<>();
        Document offset = DocumentReader.defaultReader().read(args[2]);
        offset.forEach(field -> position.put(field.getName().toString(), field.getValue().asObject()));

        long started = System.nanoTime();
        double processorStarted = processorSeconds();
        FileSchemaHistory history = new FileSchemaHistory();
        history.configure(config, new MySqlHistoryRecordComparator(source -> true, new MySqlGtidSetFactory()),
            SchemaHistoryListener.NOOP, true);
        history.start();
        Tables tables = new Tables();
        history.recover(Map.of(Map.of("server", args[1]), position), tables, new MySqlAntlrDdlParser());
        double seconds = (System.nanoTime() - started) / 1e9;

        System.out.println(seconds);
        System.out.println(processorSeconds() - processorStarted);
        System.out.println(tables.size());
        System.out.println(checksum(tables));
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                System.out.println(line.replaceAll("[^0-9]", ""));
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** What the process has used of the processors, all its threads together. */
    private static double processorSeconds() {
        return ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos() / 1e9;
    }

    /** Of a line for each table in name order, with its name, its key, and names, types and nullness of its columns. */
    private static long checksum(Tables tables) {
        Map<String, Table> sorted = new TreeMap<>();
        for (TableId id : tables.tableIds()) {
            sorted.put(id.catalog() + "." + id.table(), tables.forTable(id));
        }
        StringBuilder text = new StringBuilder();
        sorted.forEach((name, table) -> {
            text.append(name).append(' ').append(String.join(",", table.primaryKeyColumnNames()));
            for (Column column : table.columns()) {
                text.append(' ').append(column.name()).append(' ').append(column.typeName()).append(' ')
                    .append(column.length()).append(' ').append(column.scale().orElse(-1)).append(' ')
                    .append(column.isOptional());
            }
            text.append('\n');
        });
        CRC32 checksum = new CRC32();
        checksum.update(text.toString().getBytes(StandardCharsets.UTF_8));
        return checksum.getValue();
    }
}
