import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Fills a compacted topic of a running broker, and its __consumer_offsets, with keys that are written often.
 * Some records are tombstones, some are of transactions that are committed or aborted.
 *
 * Arguments: the bootstrap server, the topic. Prints the last value of each key that was not deleted.
 */
public class FillCompacted {
    private static final int RECORDS = 4000;
    private static final int KEYS = 150;
    private static final int COMMITS = 400;

    public static void main(String[] arguments) throws Exception {
        Properties client = new Properties();
        client.put("bootstrap.servers", arguments[0]);
        Map<String, String> last = new HashMap<>();
        try (Admin admin = Admin.create(client)) {
            NewTopic topic = new NewTopic(arguments[1], 1, (short) 1);
            admin.createTopics(List.of(topic.configs(Map.of(
                "cleanup.policy", "compact", "segment.bytes", "20000", "min.cleanable.dirty.ratio", "0.01"))))
                .all().get();
            fill(client, arguments[1], last);
            TopicPartition partition = new TopicPartition(arguments[1], 0);
            for (int number = 0; number < COMMITS; number++) {
                OffsetAndMetadata offset = new OffsetAndMetadata(number, "commit " + number);
                admin.alterConsumerGroupOffsets("group-" + number % 7, Map.of(partition, offset)).all().get();
            }
            admin.deleteConsumerGroups(List.of("group-3")).all().get();
        }
        last.forEach((key, value) -> System.out.println(key + " " + value));
    }

    private static void fill(Properties client, String topic, Map<String, String> last) throws Exception {
        Random chance = new Random(1);
        Properties transactional = new Properties();
        transactional.putAll(client);
        transactional.put("transactional.id", "writer");
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> plain = new KafkaProducer<>(client, text, text);
             KafkaProducer<String, String> inTransactions = new KafkaProducer<>(transactional, text, text)) {
            inTransactions.initTransactions();
            for (int number = 0; number < RECORDS; number++) {
                boolean isTransaction = number % 100 < 10;
                boolean isAborted = isTransaction && number / 100 % 2 == 1;
                if (number % 100 == 0) {
                    plain.flush();
                    inTransactions.beginTransaction();
                }
                String key = "key-" + chance.nextInt(KEYS);
                String value = chance.nextInt(12) == 0 ? null : "value-" + number;
                (isTransaction ? inTransactions : plain).send(new ProducerRecord<>(topic, 0, key, value));
                if (!isAborted) {
                    if (value == null) {
                        last.remove(key);
                    } else {
                        last.put(key, value);
                    }
                }
                if (number % 100 == 9) {
                    if (isAborted) {
                        inTransactions.flush();
                        inTransactions.abortTransaction();
                    } else {
                        inTransactions.commitTransaction();
                    }
                }
            }
        }
    }
}
