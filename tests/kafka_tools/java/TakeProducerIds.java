import kafka.coordinator.transaction.ZkProducerIdManager;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.utils.Time;
import org.apache.zookeeper.client.ZKClientConfig;

/** Takes producer ids from ZooKeeper as a broker with the given id, and prints them. */
public class TakeProducerIds {
    public static void main(String[] arguments) throws Exception {
        KafkaZkClient client = KafkaZkClient.apply(arguments[0], false, 10000, 10000, 10, Time.SYSTEM, "test",
            new ZKClientConfig(), "kafka.server", "SessionExpireListener", false, false);
        ZkProducerIdManager ids = new ZkProducerIdManager(Integer.parseInt(arguments[1]), client);
        for (int i = 0; i < Integer.parseInt(arguments[2]); i++)
            System.out.println(ids.generateProducerId().get());
        client.close();
    }
}
