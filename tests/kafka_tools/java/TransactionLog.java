import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import scala.Option;

/**
 * Does to a log of Kafka what each line says, and prints a line for each: "CLIENT hex" and
 * "COORDINATOR hex" append a batch; "roll" begins a segment; "watermark n" moves the high watermark;
 * "aborted from to" asks for the aborted transactions.
 *
 * Argument: the partition's folder.
 */
public class TransactionLog {
    public static void main(String[] arguments) throws Exception {
        LogConfig config = new LogConfig(Map.of());
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog$.MODULE$.apply(
            new File(arguments[0]), config, 0L, 0L, scheduler, new BrokerTopicStats(false), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Option.empty(), true, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] word = line.split(" ");
            System.out.println(done(log, word) + " " + log.logEndOffset() + " " + log.lastStableOffset());
        }
        log.close();
        scheduler.shutdown();
    }

    static String done(UnifiedLog log, String[] word) {
        if (word[0].equals("watermark")) {
            log.updateHighWatermark(Long.parseLong(word[1]));
            return "moved";
        }
        if (word[0].equals("roll")) {
            log.roll(Option.empty());
            return "rolled";
        }
        if (word[0].equals("aborted")) {
            StringBuilder found = new StringBuilder("aborted");
            scala.collection.Iterator<AbortedTxn> all =
                log.collectAbortedTransactions(Long.parseLong(word[1]), Long.parseLong(word[2])).iterator();
            while (all.hasNext()) {
                AbortedTxn one = all.next();
                // This method asks from the log's start on, the read path from the offset that is read.
                if (one.lastOffset() >= Long.parseLong(word[1]))
                    found.append(" " + one.producerId() + ":" + one.firstOffset());
            }
            return found.toString();
        }
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(word[1])));
            return "appended " + log.appendAsLeader(records, 0, AppendOrigin.valueOf(word[0]),
                log.appendAsLeader$default$4(), log.appendAsLeader$default$5(),
                log.appendAsLeader$default$6()).firstOffset();
        } catch (ApiException error) {
            return error.getClass().getSimpleName();
        }
    }
}
