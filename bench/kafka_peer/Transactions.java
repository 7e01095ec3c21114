import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One producer that commits one transaction after another.
 * Arguments: bootstrap servers, topic, partitions, records of a transaction, bytes of a record, seconds.
 * Prints transactions, seconds, p50 and p99 of one transaction in us.
 */
public class Transactions {
    public static void main(String[] arguments) {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        int records = Integer.parseInt(arguments[3]);
        byte[] value = new byte[Integer.parseInt(arguments[4])];
        long seconds = Long.parseLong(arguments[5]);
        try (KafkaProducer<byte[], byte[]> producer = open(arguments[0])) {
            producer.initTransactions();
            transaction(producer, topic, partitions, records, value);
            List<Long> took = new ArrayList<>();
            long began = System.nanoTime();
            while (System.nanoTime() - began < seconds * 1_000_000_000L) {
                long sent = System.nanoTime();
                transaction(producer, topic, partitions, records, value);
                took.add(System.nanoTime() - sent);
            }
            double elapsed = (System.nanoTime() - began) / 1e9;
            took.sort(null);
            System.out.printf(
                "%d %.3f %d %d%n",
                took.size(),
                elapsed,
                took.get(took.size() / 2) / 1000,
                took.get((int) (took.size() * 0.99)) / 1000);
        }
    }

    private static KafkaProducer<byte[], byte[]> open(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", "bench-" + System.nanoTime());
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        return new KafkaProducer<>(properties);
    }

    private static void transaction(
        KafkaProducer<byte[], byte[]> producer,
        String topic,
        int partitions,
        int records,
        byte[] value) {
        producer.beginTransaction();
        for (int number = 0; number < records; number++) {
            producer.send(new ProducerRecord<>(topic, number % partitions, null, value));
        }
        producer.commitTransaction();
    }
}
