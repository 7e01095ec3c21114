import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import kafka.log.Cleaner;
import kafka.log.LogToClean;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.Option;
import scala.runtime.BoxedUnit;

/**
 * Runs passes of Kafka's own cleaner over one partition's log, which was shut down in order, and prints how
 * long they took in milliseconds. Tombstones may go in the pass after the one that meets them.
 *
 * Arguments: the partition's folder, segment.bytes, the number of passes, the bytes of the offset map.
 */
public class CompactLog {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        LogConfig config = new LogConfig(Map.of(
            "cleanup.policy", "compact",
            "segment.bytes", arguments[1],
            "delete.retention.ms", "0",
            "file.delete.delay.ms", "0"));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog$.MODULE$.apply(
            folder, config, 0L, 0L, scheduler, new BrokerTopicStats(false), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), true,
            Option.empty(), true, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        log.updateHighWatermark(log.logEndOffset());
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(Integer.parseInt(arguments[3]), "MD5"), 262_144, 104_857_600, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM), Time.SYSTEM,
            name -> BoxedUnit.UNIT);
        long end = log.activeSegment().baseOffset();
        long started = System.nanoTime();
        for (int pass = 0; pass < Integer.parseInt(arguments[2]); pass++) {
            for (long dirty = 0; dirty < end;) {
                dirty = (Long) cleaner.clean(new LogToClean(log.topicPartition(), log, dirty, end, false))._1();
            }
            Thread.sleep(2);
        }
        System.out.println((System.nanoTime() - started) / 1_000_000);
        log.close();
        scheduler.shutdown();
    }
}
