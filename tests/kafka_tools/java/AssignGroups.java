import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * For each line {"assignor", "generations": [{"topics": {name: [[rack]]}, "members": {id: {"subscription",
 * "instance"}}}]}, one with what Kafka's assignor gives: [{"assignment": {id: bytes}, "subscriptions": {id:
 * bytes}}], the second as Kafka writes the subscriptions it read. One instance serves all generations of a line.
 */
public class AssignGroups {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = JSON.readTree(line);
            ConsumerPartitionAssignor assignor = assignor(question.get("assignor").asText());
            ArrayNode answer = JSON.createArrayNode();
            for (JsonNode generation : question.get("generations")) {
                answer.add(assign(assignor, generation));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        for (ConsumerPartitionAssignor assignor : List.of(
                new RangeAssignor(), new RoundRobinAssignor(), new StickyAssignor(), new CooperativeStickyAssignor())) {
            if (assignor.name().equals(name)) {
                return assignor;
            }
        }
        throw new IllegalArgumentException(name);
    }

    private static ObjectNode assign(ConsumerPartitionAssignor assignor, JsonNode generation) {
        ObjectNode answer = JSON.createObjectNode();
        ObjectNode written = answer.putObject("subscriptions");
        Map<String, Subscription> members = new HashMap<>();
        generation.get("members").fields().forEachRemaining(member -> {
            byte[] bytes = Base64.getDecoder().decode(member.getValue().get("subscription").asText());
            Subscription subscription = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes));
            written.put(member.getKey(), base64(ConsumerProtocol.serializeSubscription(subscription)));
            String instance = member.getValue().get("instance").asText();
            subscription.setGroupInstanceId(instance.isEmpty() ? Optional.empty() : Optional.of(instance));
            members.put(member.getKey(), subscription);
        });
        ObjectNode assignment = JSON.createObjectNode();
        try {
            assignor.assign(cluster(generation.get("topics")), new GroupSubscription(members)).groupAssignment()
                .forEach((member, given) -> assignment.put(member, base64(ConsumerProtocol.serializeAssignment(given))));
            answer.set("assignment", assignment);
        } catch (RuntimeException error) {
            answer.put("failure", error.toString());
        }
        return answer;
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(nodes.computeIfAbsent(rack.asText(), r -> new Node(nodes.size(), "host", 9092, r)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number++, all.length == 0 ? null : all[0], all, all));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, new HashSet<>(), new HashSet<>());
    }

    private static String base64(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }
}
