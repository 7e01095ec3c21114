import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.ProducerAppendInfo;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/**
 * Reads appends "origin producerId epoch baseSequence records timestamp" and prints what Kafka does
 * with each: "appended offset", "duplicate firstOffset lastOffset timestamp", or the name of the error.
 * Then it writes a snapshot into the folder.
 */
public class ProducerStates {
    public static void main(String[] arguments) throws Exception {
        ProducerStateManager states = new ProducerStateManager(new TopicPartition("t", 0),
            new File(arguments[0]), 60000, new ProducerStateManagerConfig(86400000, false), Time.SYSTEM);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        long end = 0;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] word = line.split(" ");
            SimpleRecord[] records = new SimpleRecord[Integer.parseInt(word[4])];
            for (int i = 0; i < records.length; i++)
                records[i] = new SimpleRecord(Long.parseLong(word[5]), new byte[0], new byte[0]);
            RecordBatch batch = MemoryRecords.withIdempotentRecords(RecordBatch.MAGIC_VALUE_V2, end, Compression.NONE,
                Long.parseLong(word[1]), Short.parseShort(word[2]), Integer.parseInt(word[3]), 0, records)
                .batches().iterator().next();
            boolean fromClient = word[0].equals("client");
            Optional<ProducerStateEntry> entry = states.lastEntry(batch.producerId());
            Optional<BatchMetadata> duplicate = fromClient && entry.isPresent()
                ? entry.get().findDuplicateBatch(batch) : Optional.empty();
            if (duplicate.isPresent()) {
                BatchMetadata found = duplicate.get();
                System.out.println("duplicate " + found.firstOffset() + " " + found.lastOffset + " " + found.timestamp);
                continue;
            }
            try {
                ProducerAppendInfo append = states.prepareUpdate(batch.producerId(),
                    fromClient ? AppendOrigin.CLIENT : AppendOrigin.REPLICATION);
                append.append(batch, Optional.empty());
                states.update(append);
                System.out.println("appended " + end);
                end = batch.nextOffset();
                states.updateMapEndOffset(end);
            } catch (ApiException error) {
                System.out.println(error.getClass().getSimpleName());
            }
        }
        states.takeSnapshot();
    }
}
