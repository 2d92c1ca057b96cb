import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The file of Kafka's {@code FileOffsetBackingStore} in and out: a serialised map of byte arrays.
 *
 * <p>{@code Offsets read FILE} prints the key and the value of its one entry, each on a line; {@code Offsets write FILE KEY
 * VALUE} makes a file of one entry.
 */
public final class Offsets {
    private Offsets() {
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("read")) {
            try (ObjectInputStream in = new ObjectInputStream(new FileInputStream(args[1]))) {
                Map<?, ?> entries = (Map<?, ?>) in.readObject();
                if (entries.size() != 1) {
                    throw new IllegalStateException(entries.size() + " offsets, expected one");
                }
                for (Map.Entry<?, ?> entry : entries.entrySet()) {
                    System.out.println(new String((byte[]) entry.getKey(), StandardCharsets.UTF_8));
                    System.out.println(new String((byte[]) entry.getValue(), StandardCharsets.UTF_8));
                }
            }
            return;
        }
        HashMap<byte[], byte[]> entries = new HashMap<>();
        entries.put(args[2].getBytes(StandardCharsets.UTF_8), args[3].getBytes(StandardCharsets.UTF_8));
        try (ObjectOutputStream out = new ObjectOutputStream(new FileOutputStream(args[1]))) {
            out.writeObject(entries);
        }
    }
}
