import io.debezium.embedded.EmbeddedEngineChangeEvent;
import io.debezium.engine.Header;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.connect.data.Schema;

/**
 * A batch of Debezium's records as one array of bytes, with what Python has to know of each.
 *
 * Python asks once for a batch: each call into Java costs it two microseconds, and a record took
 * nine of them. Janino compiles this, so it has no generics.
 */
public class RecordLines {
    /** A longer value is not copied once more: the heap is small. */
    private static final int LONGEST = 16 << 20;
    private static final byte[] KEY = "{\"key\":".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NO_KEY = "null".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] VALUE = ",\"value\":".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] END = "}\n".getBytes(StandardCharsets.US_ASCII);

    /** The lines, one after the other; a record without a value, or with a longer one, has none. */
    public final byte[] text;
    /** Where the value of each record begins in the text; -1: it is longer. */
    public final int[] values;
    /** Where the line of each record ends in the text. */
    public final int[] ends;
    /** The number of each record's schema, in the lists below. */
    public final int[] numbers;
    /** Whether a record has headers that belong to its line. */
    public final boolean[] hasHeaders;
    /** The offset after each record that has a value. */
    public final Map[] offsets;
    /** The topics and schemas of these records, each pair once for each time that it changes. */
    public final List topics = new ArrayList();
    public final List schemas = new ArrayList();

    private final Map newest = new HashMap();

    public RecordLines(List records, Set headerNames) {
        int count = records.size();
        values = new int[count];
        ends = new int[count];
        numbers = new int[count];
        hasHeaders = new boolean[count];
        offsets = new Map[count];
        text = new byte[sizeOf(records)];
        int at = 0;
        for (int i = 0; i < count; i++) {
            EmbeddedEngineChangeEvent record = (EmbeddedEngineChangeEvent) records.get(i);
            byte[] value = (byte[]) record.value();
            if (value != null) {
                offsets[i] = record.sourceRecord().sourceOffset();
                numbers[i] = numberOf(record.destination(), record.sourceRecord().valueSchema());
                hasHeaders[i] = hasHeader(record.headers(), headerNames);
            }
            if (value != null && value.length > LONGEST) {
                values[i] = -1;
            } else if (value != null) {
                at = put(KEY, at);
                at = put(record.key() == null ? NO_KEY : (byte[]) record.key(), at);
                values[i] = at = put(VALUE, at);
                at = put(END, put(value, at));
            }
            ends[i] = at;
        }
    }

    private static int sizeOf(List records) {
        int size = 0;
        for (int i = 0; i < records.size(); i++) {
            EmbeddedEngineChangeEvent record = (EmbeddedEngineChangeEvent) records.get(i);
            byte[] value = (byte[]) record.value();
            if (value != null && value.length <= LONGEST) {
                int key = record.key() == null ? NO_KEY.length : ((byte[]) record.key()).length;
                int line = KEY.length + key + VALUE.length + value.length + END.length;
                size = Math.addExact(size, line);
            }
        }
        return size;
    }

    private int put(byte[] part, int at) {
        System.arraycopy(part, 0, text, at, part.length);
        return at + part.length;
    }

    private int numberOf(String topic, Schema schema) {
        Integer number = (Integer) newest.get(topic);
        if (number == null || !same(schema, (Schema) schemas.get(number.intValue()))) {
            number = Integer.valueOf(schemas.size());
            newest.put(topic, number);
            topics.add(topic);
            schemas.add(schema);
        }
        return number.intValue();
    }

    private static boolean same(Schema one, Schema other) {
        return one == other || one != null && one.equals(other);
    }

    private static boolean hasHeader(List headers, Set names) {
        for (int i = 0; headers != null && i < headers.size(); i++) {
            if (names.contains(((Header) headers.get(i)).getKey())) {
                return true;
            }
        }
        return false;
    }
}
