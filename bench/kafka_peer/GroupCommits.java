import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumers of one group, one thread each, that commit their own partition again and again.
 * Arguments: bootstrap servers, topic, consumers, seconds. Prints commits, seconds, p50 and p99 in us.
 */
public class GroupCommits {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        int members = Integer.parseInt(arguments[2]);
        long seconds = Long.parseLong(arguments[3]);
        List<KafkaConsumer<byte[], byte[]>> consumers = new ArrayList<>();
        for (int number = 0; number < members; number++) {
            consumers.add(open(bootstrap, topic, number));
        }
        ExecutorService threads = Executors.newFixedThreadPool(members);
        long began = System.nanoTime();
        long end = began + seconds * 1_000_000_000L;
        List<Callable<long[]>> work = new ArrayList<>();
        for (int number = 0; number < members; number++) {
            TopicPartition partition = new TopicPartition(topic, number);
            KafkaConsumer<byte[], byte[]> consumer = consumers.get(number);
            work.add(() -> commitUntil(consumer, partition, end));
        }
        long[] took = new long[0];
        for (Future<long[]> done : threads.invokeAll(work)) {
            took = LongStream.concat(Arrays.stream(took), Arrays.stream(done.get())).toArray();
        }
        double elapsed = (System.nanoTime() - began) / 1e9;
        threads.shutdown();
        Arrays.sort(took);
        System.out.printf(
            "%d %.3f %d %d%n",
            took.length,
            elapsed,
            took[took.length / 2] / 1000,
            took[(int) (took.length * 0.99)] / 1000);
        consumers.forEach(KafkaConsumer::close);
    }

    private static KafkaConsumer<byte[], byte[]> open(String bootstrap, String topic, int number) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", "commits");
        properties.put("enable.auto.commit", "false");
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties);
        TopicPartition partition = new TopicPartition(topic, number);
        consumer.assign(List.of(partition));
        consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0)));
        return consumer;
    }

    private static long[] commitUntil(
        KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long end) {
        List<Long> took = new ArrayList<>();
        for (long offset = 1; System.nanoTime() < end; offset++) {
            long sent = System.nanoTime();
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset)));
            took.add(System.nanoTime() - sent);
        }
        return took.stream().mapToLong(Long::longValue).toArray();
    }
}
