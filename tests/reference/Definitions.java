import io.debezium.config.Configuration;
import io.debezium.connector.mysql.antlr.MySqlAntlrDdlParser;
import io.debezium.connector.mysql.gtid.MySqlGtidSetFactory;
import io.debezium.connector.mysql.history.MySqlHistoryRecordComparator;
import io.debezium.document.Document;
import io.debezium.document.DocumentReader;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.Tables;
import io.debezium.relational.history.SchemaHistory;
import io.debezium.relational.history.SchemaHistoryListener;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/**
 * The definitions that Debezium derives from a schema history at an offset.
 *
 * <p>{@code Definitions PROPERTIES OFFSET} recovers with the schema history of a connector's properties file, and prints a
 * line for each table, which begins with {@code table}, and one for each of its columns, which begins with {@code column}.
 */
public final class Definitions {
    private Definitions() {
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(args[0]))) {
            properties.load(reader);
        }
        Configuration config = Configuration.from(properties).edit().with(SchemaHistory.NAME, "definitions").build();
        Document offset = DocumentReader.defaultReader().read(args[1]);
        Map<String, Object> position = new HashMap<>();
        offset.forEach(field -> position.put(field.getName().toString(), field.getValue().asObject()));

        SchemaHistory history = config.getInstance("schema.history.internal", SchemaHistory.class);
        history.configure(config, new MySqlHistoryRecordComparator(source -> true, new MySqlGtidSetFactory()),
            SchemaHistoryListener.NOOP, true);
        history.start();
        Tables tables = new Tables();
        Map<String, String> source = Map.of("server", config.getString("topic.prefix"));
        history.recover(Map.of(source, position), tables, new MySqlAntlrDdlParser());
        for (TableId id : tables.tableIds()) {
            print(tables.forTable(id));
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void print(Table table) {
        String name = table.id().catalog() + "." + table.id().table();
        System.out.println("table " + name + " charset=" + table.defaultCharsetName() + " key="
            + String.join(",", table.primaryKeyColumnNames()));
        for (Column column : table.columns()) {
            String defaultValue = !column.hasDefaultValue() ? "none" : column.defaultValueExpression().orElse("null");
            System.out.println("column " + name + " " + column.position() + " " + column.name() + " type="
                + column.typeName() + "/" + column.jdbcType() + " charset=" + column.charsetName() + " length="
                + column.length() + " scale=" + column.scale().orElse(-1) + " optional=" + column.isOptional()
                + " auto=" + column.isAutoIncremented() + " generated=" + column.isGenerated() + " default=" + defaultValue
                + " labels=" + String.join(",", column.enumValues()) + " comment=" + column.comment());
        }
    }
}
