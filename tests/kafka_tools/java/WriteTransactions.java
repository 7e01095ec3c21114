import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Fills two partitions of a topic of a running broker: transactions of three producers, which lie between one
 * another, some committed and some aborted, and records of none. The last transaction stays open.
 *
 * Arguments: the bootstrap server, the topic. Prints what a consumer of each isolation level gets:
 * level, partition, offset and value of each record.
 */
public class WriteTransactions {
    private static final int STEPS = 1500;
    private static final int PARTITIONS = 2;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Properties client = new Properties();
        client.put("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(client)) {
            NewTopic made = new NewTopic(topic, PARTITIONS, (short) 1);
            admin.createTopics(List.of(made.configs(Map.of("segment.bytes", "20000")))).all().get();
        }
        write(client, topic);
        for (String level : List.of("read_uncommitted", "read_committed")) {
            read(client, topic, level);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // close() would abort the open transaction
    }

    private static void write(Properties client, String topic) {
        Random chance = new Random(2);
        List<KafkaProducer<String, String>> producers = new ArrayList<>();
        boolean[] isOpen = new boolean[4];
        for (int number = 0; number < 4; number++) {
            Properties one = new Properties();
            one.putAll(client);
            if (number > 0) {
                one.put("transactional.id", "writer-" + number);
            }
            producers.add(new KafkaProducer<>(one, new StringSerializer(), new StringSerializer()));
            if (number > 0) {
                producers.get(number).initTransactions();
            }
        }
        for (int step = 0; step < STEPS; step++) {
            int number = chance.nextInt(4);
            KafkaProducer<String, String> producer = producers.get(number);
            if (number > 0 && !isOpen[number]) {
                producer.beginTransaction();
                isOpen[number] = true;
            }
            producer.send(new ProducerRecord<>(topic, chance.nextInt(PARTITIONS), null, "value-" + step));
            producer.flush();
            if (number > 0 && chance.nextInt(4) == 0) {
                if (chance.nextInt(3) == 0) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                isOpen[number] = false;
            }
        }
        for (int number = 1; number < 4; number++) {
            if (isOpen[number]) {
                producers.get(number).commitTransaction();
            }
        }
        producers.get(1).beginTransaction();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            producers.get(1).send(new ProducerRecord<>(topic, partition, null, "open-" + partition));
            producers.get(1).flush();
            producers.get(0).send(new ProducerRecord<>(topic, partition, null, "behind-" + partition));
            producers.get(0).flush();
        }
    }

    private static void read(Properties client, String topic, String level) {
        Properties one = new Properties();
        one.putAll(client);
        one.put("isolation.level", level);
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(one, text, text)) {
            List<TopicPartition> partitions =
                List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(level + " " + record.partition() + " " + record.offset() + " " + record.value());
                }
            }
        }
    }
}
