import java.io.File;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** Prints "epoch startOffset" for each line of the leader-epoch-checkpoint in a partition's folder. */
public class ReadLeaderEpochs {
    public static void main(String[] arguments) throws Exception {
        File file = LeaderEpochCheckpointFile.newFile(new File(arguments[0]));
        for (EpochEntry entry : new LeaderEpochCheckpointFile(file, new LogDirFailureChannel(1)).read()) {
            System.out.println(entry.epoch + " " + entry.startOffset);
        }
    }
}
