"""Names of the partitions' folders in a data directory: `flights-3`, and what becomes of them."""

from barnabas.topic_partition import TopicPartition

DELETE_SUFFIX = "-delete"
_OTHER_SUFFIXES = ("-future", "-stray")
_LONGEST_NAME = 255


def parse_folder_name(name: str) -> TopicPartition | None:
    """The partition whose log lies in a folder of this name; None if it is no such name."""
    topic, separator, partition = name.rpartition("-")
    if not separator or not topic or not (partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))


def is_being_deleted(name: str) -> bool:
    return name.endswith(DELETE_SUFFIX)


def deleted_log(name: str) -> TopicPartition | None:
    """The partition whose log is being deleted in a folder of this name."""
    return parse_folder_name(name.removesuffix(DELETE_SUFFIX).rpartition(".")[0])


def is_kept_aside(name: str) -> bool:
    """Whether Kafka gave the folder this name to keep it out of the way."""
    return name.endswith(_OTHER_SUFFIXES)


def name_for_deletion(topic_partition: TopicPartition, unique: str) -> str:
    """Kafka's: `<topic>-<partition>.<32 hex digits>-delete`, the topic cut if it gets too long."""
    suffix = f"-{topic_partition.partition}.{unique}{DELETE_SUFFIX}"
    return topic_partition.topic[: _LONGEST_NAME - len(suffix)] + suffix
