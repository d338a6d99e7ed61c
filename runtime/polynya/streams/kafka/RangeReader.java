import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Writes the records of ranges of offsets to a file, as a stream of Arrow.
 *
 * One client reads range after range: to make another takes longer than to read some thousand
 * records. Janino compiles this, so it has no generics.
 */
public class RangeReader {
    /** Rows and bytes of a batch in the stream; one record more may be in it. */
    private static final int MOST_ROWS = 20000;
    private static final int MOST_BYTES = 4 << 20;
    private static final Duration POLL = Duration.ofMillis(500);

    private KafkaConsumer client;

    /** Make the client. */
    public void open(Map properties) {
        client =
            new KafkaConsumer(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Close its connections; what it holds is gone. */
    public void close() {
        if (client != null) {
            client.close(Duration.ZERO);
        }
    }

    /**
     * Read ranges until their ends or until the bytes of a partition reach its limit.
     *
     * @param text a line for each partition: topic, number, first offset, offset behind the last,
     *     and most bytes, of which the last record may take more
     * @param readers most partitions that are read side by side
     * @param patience milliseconds that the brokers may give nothing
     * @param path a file that is open elsewhere; its name is removed, so that a kill leaves nothing
     * @return a line for each partition that its limit ended: topic, number, and the offset of the
     *     first record that was not taken
     */
    public String read(String text, int readers, long patience, String path) throws IOException {
        List waiting = new ArrayList();
        List places = new ArrayList();
        String[] lines = text.split("\n");
        for (int i = 0; i < lines.length; i++) {
            Range range = new Range(lines[i].split(" "));
            waiting.add(range);
            places.add(range.place);
        }
        List all = new ArrayList(waiting);
        client.assign(places);
        for (int i = 0; i < all.size(); i++) {
            client.seek(((Range) all.get(i)).place, ((Range) all.get(i)).begin);
        }
        client.pause(places);
        Rows rows = new Rows(path);
        try {
            List active = new ArrayList();
            long heard = System.nanoTime();
            while (!active.isEmpty() || !waiting.isEmpty()) {
                while (active.size() < readers && !waiting.isEmpty()) {
                    Range next = (Range) waiting.remove(0);
                    client.resume(Arrays.asList(new Object[] {next.place}));
                    active.add(next);
                }
                ConsumerRecords got = client.poll(POLL);
                boolean moved = false;
                Iterator each = active.iterator();
                while (each.hasNext()) {
                    Range range = (Range) each.next();
                    range.take(got.records(range.place), rows);
                    // Markers of transactions and compacted records are passed without a record.
                    long at = client.position(range.place);
                    moved |= at > range.at;
                    range.at = at;
                    if (range.cut >= 0 || at >= range.end) {
                        client.pause(Arrays.asList(new Object[] {range.place}));
                        each.remove();
                    }
                }
                long now = System.nanoTime();
                if (moved) {
                    heard = now;
                } else if (now - heard > patience * 1000000L) {
                    throw new TimeoutException("no record in " + patience + " ms of " + active);
                }
            }
        } finally {
            rows.close();
        }
        // What was fetched beyond takes memory, and the topic may be another one at the next read.
        client.unsubscribe();
        StringBuilder cuts = new StringBuilder();
        for (int i = 0; i < all.size(); i++) {
            Range range = (Range) all.get(i);
            if (range.cut >= 0) {
                cuts.append(range.place.topic()).append(' ').append(range.place.partition());
                cuts.append(' ').append(range.cut).append('\n');
            }
        }
        return cuts.toString();
    }

    /** Offsets of a partition, and how far they were read. */
    private static class Range {
        final TopicPartition place;
        final long begin;
        final long end;
        final long most;
        long at;
        long used;
        long cut = -1;

        Range(String[] words) {
            place = new TopicPartition(words[0], Integer.parseInt(words[1]));
            begin = at = Long.parseLong(words[2]);
            end = Long.parseLong(words[3]);
            most = Long.parseLong(words[4]);
        }

        void take(List records, Rows rows) throws IOException {
            for (int i = 0; i < records.size(); i++) {
                ConsumerRecord record = (ConsumerRecord) records.get(i);
                if (record.offset() >= end) {
                    return;
                }
                if (used >= most) {
                    cut = record.offset();
                    return;
                }
                used += rows.add(record);
            }
        }

        public String toString() {
            return place + " at " + at;
        }
    }

    /** The file of rows. */
    private static class Rows {
        private static final JsonFactory JSON = new JsonFactory();

        private final BufferAllocator memory = new RootAllocator();
        private final VarCharVector topic = new VarCharVector("topic", memory);
        private final BigIntVector partition = new BigIntVector("partition", memory);
        private final BigIntVector offset = new BigIntVector("offset", memory);
        private final VarBinaryVector key = new VarBinaryVector("key", memory);
        private final VarBinaryVector headers = new VarBinaryVector("headers", memory);
        private final BigIntVector micros = new BigIntVector("micros", memory);
        private final VarBinaryVector value = new VarBinaryVector("value", memory);
        private final VectorSchemaRoot root =
            new VectorSchemaRoot(
                Arrays.asList(
                    new Object[] {topic, partition, offset, key, headers, micros, value}));
        private final FileOutputStream file;
        private final ArrowStreamWriter writer;
        private int count;
        private long bytes;

        Rows(String path) throws IOException {
            file = new FileOutputStream(path);
            new File(path).delete();
            writer = new ArrowStreamWriter(root, null, file.getChannel());
            writer.start();
        }

        /** The bytes of key, headers and value, as they are landed. */
        long add(ConsumerRecord record) throws IOException {
            long size = 0;
            topic.setSafe(count, record.topic().getBytes(StandardCharsets.UTF_8));
            partition.setSafe(count, (long) record.partition());
            offset.setSafe(count, record.offset());
            micros.setSafe(count, record.timestamp() * 1000L);
            byte[] raw = (byte[]) record.key();
            size += put(key, raw == null ? null : Base64.getEncoder().encode(raw));
            size += put(headers, json(record.headers()));
            size += put(value, (byte[]) record.value());
            count++;
            bytes += size;
            if (count >= MOST_ROWS || bytes >= MOST_BYTES) {
                flush();
            }
            return size;
        }

        private int put(VarBinaryVector column, byte[] bytes) {
            if (bytes == null) {
                column.setNull(count);
                return 0;
            }
            column.setSafe(count, bytes);
            return bytes.length;
        }

        /** The bytes of a header may be anything, and JSON holds text. */
        private static byte[] json(Headers headers) throws IOException {
            Header[] found = headers.toArray();
            if (found.length == 0) {
                return null;
            }
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            JsonGenerator json = JSON.createGenerator(text);
            json.writeStartArray();
            for (int i = 0; i < found.length; i++) {
                json.writeStartObject();
                json.writeStringField("key", found[i].key());
                byte[] raw = found[i].value();
                String encoded = raw == null ? null : Base64.getEncoder().encodeToString(raw);
                json.writeStringField("value", encoded);
                json.writeEndObject();
            }
            json.writeEndArray();
            json.close();
            return text.toByteArray();
        }

        private void flush() throws IOException {
            root.setRowCount(count);
            writer.writeBatch();
            root.clear();
            count = 0;
            bytes = 0;
        }

        void close() throws IOException {
            try {
                if (count > 0) {
                    flush();
                }
                writer.end();
            } finally {
                root.close();
                writer.close();
                file.close();
                memory.close();
            }
        }
    }
}
