import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

/**
 * The real Debezium with a consumer that only counts: {@code Counter CONFIG RECORDS [latency]}.
 *
 * <p>Prints {@code first} with the first record of a row, {@code half} with the middle one and {@code done BYTES} with the
 * last, then waits for the end of its input. With {@code latency}, also {@code at MICROSECONDS} for each row: the time from
 * the commit, as its record says it, to the consumer.
 */
public final class Counter {
    private final long expected;
    private final boolean latency;
    private final CountDownLatch done = new CountDownLatch(1);
    private final StringBuilder lines = new StringBuilder();
    private long records;
    private long bytes;

    private Counter(long expected, boolean latency) {
        this.expected = expected;
        this.latency = latency;
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(args[0]), StandardCharsets.UTF_8)) {
            properties.load(reader);
        }
        Counter counter = new Counter(Long.parseLong(args[1]), args.length > 2);
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(properties)
            .using((success, message, error) -> {
                if (!success) {
                    System.err.println(message);
                    Runtime.getRuntime().halt(1);
                }
            })
            .notifying(counter::batch)
            .build();
        Thread runner = new Thread(engine, "engine");
        runner.start();
        counter.done.await();
        while (System.in.read() >= 0) {
            // Until whoever measures has read what this process used.
        }
        Runtime.getRuntime().halt(0);
    }

    private void batch(List<ChangeEvent<String, String>> events,
        DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) throws InterruptedException {
        for (ChangeEvent<String, String> event : events) {
            // Rows have a topic of three parts; schema changes only the prefix.
            if (event.destination().indexOf('.') > 0 && records < expected) {
                records++;
                bytes += event.value() == null ? 0 : event.value().length();
                if (latency) {
                    latency(event.value());
                }
                if (records == 1) {
                    System.out.println("first");
                }
                if (records == expected / 2) {
                    System.out.println("half");
                }
                if (records == expected) {
                    System.out.print(lines);
                    System.out.println("done " + bytes);
                    System.out.flush();
                    done.countDown();
                }
            }
            committer.markProcessed(event);
        }
        committer.markBatchFinished();
    }

    /** The first {@code ts_us} of an envelope after its source block begins is that of the source. */
    private void latency(String value) {
        java.time.Instant now = java.time.Instant.now();
        int source = value.indexOf("\"source\":");
        int at = value.indexOf("\"ts_us\":", source) + 8;
        int end = at;
        while (Character.isDigit(value.charAt(end))) {
            end++;
        }
        long committed = Long.parseLong(value.substring(at, end));
        long micros = now.getEpochSecond() * 1_000_000L + now.getNano() / 1000;
        lines.append("at ").append(micros - committed).append('\n');
    }
}
