"""`partition.metadata` in a log's folder: the id of the topic the log belongs to (KIP-516).

A topic that was deleted and created again has the same name and another id.
"""

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.errors import UnusableLog

NAME = "partition.metadata"


def read_topic_id(disk: Disk, directory: str) -> str | None:
    """The id as Kafka writes it, or None if there is no file yet. Raises UnusableLog."""
    path = f"{directory}/{NAME}"
    if not disk.exists(path):
        return None
    text = disk.read_file(path).decode(errors="replace")
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    topic_id = fields.get("topic_id")
    if not fields.get("version", "").isdigit() or not topic_id:
        raise UnusableLog(f"{path} is malformed: {text!r}")
    return topic_id


def write_topic_id(disk: Disk, directory: str, topic_id: str) -> None:
    """Durable on return. Raises OSError."""
    disk.write_file(f"{directory}/{NAME}", f"version: 0\ntopic_id: {topic_id}".encode())
