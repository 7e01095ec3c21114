import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;

/**
 * Writes one partition's log through Kafka's own classes into a folder: a segment for each codec, its
 * leader epoch the number of the codec, and the leader-epoch-checkpoint.
 *
 * What record number n holds is a rule which the reader of the files knows too.
 */
public class WriteSegments {
    static final int BATCHES = 20;
    static final int RECORDS = 10;
    static final long START = 1_700_000_000_000L;
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        LogConfig config = new LogConfig(Map.of("index.interval.bytes", "1000"));
        List<EpochEntry> epochs = new ArrayList<>();
        long offset = 0;
        for (int codec = 0; codec < CODECS.length; codec++) {
            epochs.add(new EpochEntry(codec, offset));
            LogSegment segment = LogSegment.open(folder, offset, config, Time.SYSTEM, 0, false);
            for (int batch = 0; batch < BATCHES; batch++) {
                segment.append(offset + RECORDS - 1, batch(CODECS[codec], codec, offset));
                offset += RECORDS;
            }
            segment.onBecomeInactiveSegment();
            segment.flush();
            segment.close();
        }
        new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(folder), new LogDirFailureChannel(1))
            .write(epochs);
    }

    static MemoryRecords batch(String codec, int epoch, long offset) {
        SimpleRecord[] records = new SimpleRecord[RECORDS];
        for (int i = 0; i < RECORDS; i++) {
            records[i] = record(offset + i);
        }
        return MemoryRecords.withRecords(offset, Compression.of(codec).build(), epoch, records);
    }

    static SimpleRecord record(long n) {
        byte[] key = n % 7 == 0 ? null : bytes("key-" + n);
        byte[] value = n % 11 == 0 ? null : bytes(("value-" + n + " ").repeat((int) (n % 50)));
        Header[] headers = n % 3 == 0 ? new Header[0] : new Header[] {new RecordHeader("number", bytes("" + n))};
        return new SimpleRecord(START + n, key, value, headers);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
