import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.Header;
import io.debezium.engine.format.CloudEvents;
import io.debezium.engine.format.Json;
import io.debezium.engine.format.KeyValueHeaderChangeEventFormat;
import io.debezium.engine.spi.OffsetCommitPolicy;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The real Debezium with the arguments and the output of {@code holdfast run}:
 * {@code --config FILE --output FILE [--max-records N] [--idle-timeout SECONDS] [--ack-first N]}.
 *
 * <p>One line a record, flushed per batch. Only the first N records are acknowledged, and their offset is stored at
 * once. SIGTERM closes the engine. Exit code 0, or 1 when the engine
 * failed; its error is on stderr.
 */
public final class Reference {
    /** The converter of values that makes them CloudEvents. */
    private static final String CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter";

    private final Map<String, String> arguments;
    private final BufferedWriter out;
    private final AtomicLong lastRecord = new AtomicLong();
    private final CountDownLatch done = new CountDownLatch(1);
    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile boolean failed;
    private long records;

    private Reference(Map<String, String> arguments) throws IOException {
        this.arguments = arguments;
        out = Files.newBufferedWriter(Path.of(arguments.get("--output")), StandardCharsets.UTF_8,
            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> arguments = new HashMap<>();
        for (int i = 0; i + 1 < args.length; i += 2) {
            arguments.put(args[i], args[i + 1]);
        }
        // halt: a JVM that was told to end by SIGTERM sits in its shutdown already, and exit() would wait for itself.
        Runtime.getRuntime().halt(new Reference(arguments).run());
    }

    private long number(String argument, long otherwise) {
        return Long.parseLong(arguments.getOrDefault(argument, Long.toString(otherwise)));
    }

    private int run() throws Exception {
        Properties properties = new Properties();
        try (Reader in = Files.newBufferedReader(Path.of(arguments.get("--config")), StandardCharsets.UTF_8)) {
            properties.load(in);
        }
        DebeziumEngine<ChangeEvent<String, String>> engine = format(properties)
            .using(properties)
            .using(OffsetCommitPolicy.always())
            .notifying(this::batch)
            .using((success, message, error) -> {
                if (error != null) {
                    error.printStackTrace();
                }
                if (!success) {
                    System.err.println("reference: the engine ended: " + message);
                    failed = true;
                }
                done.countDown();
            })
            .build();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            done.countDown();
            try {
                closed.await(20, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        Thread runner = new Thread(engine, "engine");
        runner.start();

        long idle = TimeUnit.SECONDS.toNanos(number("--idle-timeout", Long.MAX_VALUE / 1_000_000_000L));
        while (!done.await(50, TimeUnit.MILLISECONDS)) {
            long last = lastRecord.get();
            if (last != 0 && System.nanoTime() - last > idle) {
                break;
            }
        }
        if (!failed) {
            engine.close();
        }
        runner.join(15_000);
        out.flush();
        closed.countDown();
        return failed ? 1 : 0;
    }

    /** Headers need a format of their own, else they are left out. */
    private static DebeziumEngine.Builder<ChangeEvent<String, String>> format(Properties properties) {
        if (CLOUD_EVENTS.equals(properties.getProperty("value.converter"))) {
            return DebeziumEngine.create(
                KeyValueHeaderChangeEventFormat.of(Json.class, CloudEvents.class, Json.class));
        }
        return DebeziumEngine.create(KeyValueHeaderChangeEventFormat.of(Json.class, Json.class, Json.class));
    }

    private void batch(List<ChangeEvent<String, String>> events,
        DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) throws InterruptedException {
        long acknowledged = number("--ack-first", Long.MAX_VALUE);
        try {
            for (ChangeEvent<String, String> event : events) {
                out.write(line(event));
            }
            out.flush();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        for (ChangeEvent<String, String> event : events) {
            if (records++ < acknowledged) {
                committer.markProcessed(event);
            }
        }
        committer.markBatchFinished();
        lastRecord.set(System.nanoTime());
        if (records >= number("--max-records", Long.MAX_VALUE)) {
            done.countDown();
        }
    }

    /** Destinations and header names are plain ASCII; keys, values and header values are JSON already. */
    private static String line(ChangeEvent<String, String> event) {
        StringBuilder line = new StringBuilder("{\"topic\":\"").append(event.destination()).append("\",\"headers\":{");
        String separator = "";
        for (Header<?> header : event.headers()) {
            line.append(separator).append('"').append(header.getKey()).append("\":").append(header.getValue());
            separator = ",";
        }
        return line.append("},\"key\":").append(event.key()).append(",\"value\":").append(event.value()).append("}\n")
            .toString();
    }
}
