"""The names of the partitions' folders in a data directory: `flights-3`, and while deleted."""

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.disk.disk import Disk, is_out_of_descriptors

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
_OTHER_SUFFIXES = ("-future", STRAY_SUFFIX)
_LONGEST_NAME = 255


def parse_folder_name(name: str) -> TopicPartition | None:
    """The partition whose log is in a folder of this name; None if the name is of another form."""
    topic, separator, partition = name.rpartition("-")
    if not separator or not topic or not (partition.isascii() and partition.isdigit()):
        return None
    found = TopicPartition(topic, int(partition))
    return found if str(found) == name else None


def is_being_deleted(name: str) -> bool:
    return name.endswith(DELETE_SUFFIX)


def deleted_log(name: str) -> TopicPartition | None:
    """The partition whose log is being deleted in a folder of this name."""
    return parse_folder_name(name.removesuffix(DELETE_SUFFIX).rpartition(".")[0])


def is_kept_aside(name: str) -> bool:
    """Whether the folder was set aside under this name, here or by Kafka."""
    return name.endswith(_OTHER_SUFFIXES)


def changed_name(topic_partition: TopicPartition, unique: str, suffix: str) -> str:
    """`<topic>-<partition>.<32 hex digits>-delete`, as in Kafka; a long topic is shortened."""
    suffix = f"-{topic_partition.partition}.{unique}{suffix}"
    return topic_partition.topic[: _LONGEST_NAME - len(suffix)] + suffix


def rename_folder(
    disk: Disk, directory: str, name: TopicPartition, unique: str, suffix: str
) -> str:
    """Rename a log's folder and return the new path. Raises OSError.

    The sync is left out if no descriptor is free: a deleted folder that returns after a power loss
    is a stray, or has the id of an earlier topic.
    """
    renamed = f"{directory}/{changed_name(name, unique, suffix)}"
    disk.rename(f"{directory}/{name}", renamed, sync=False)
    try:
        disk.sync_directory(directory)
    except OSError as error:
        if not is_out_of_descriptors(error):
            raise
    return renamed
