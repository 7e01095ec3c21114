"""`partition.metadata` in a log's folder: the id of the log's topic (KIP-516).

A topic that was deleted and created again has another id under the same name.
"""

import re

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.errors import UnknownTopicIdError

NAME = "partition.metadata"
_TOPIC_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")  # as in the topic's znode


def read_topic_id(disk: Disk, directory: str) -> str | None:
    """The id as Kafka writes it, or None without a file. Raises UnknownTopicIdError."""
    path = f"{directory}/{NAME}"
    if not disk.exists(path):
        return None
    text = disk.read_file(path).decode(errors="replace")
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    topic_id = fields.get("topic_id", "")
    if not fields.get("version", "").isdigit() or not _TOPIC_ID.fullmatch(topic_id):
        raise UnknownTopicIdError(f"its topic is unknown: {path} is malformed: {text!r}")
    return topic_id


def write_topic_id(disk: Disk, directory: str, topic_id: str) -> None:
    """Write the id durably. Raises OSError."""
    disk.write_file(f"{directory}/{NAME}", f"version: 0\ntopic_id: {topic_id}".encode())
