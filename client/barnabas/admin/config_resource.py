"""The resources that have settings, and a change of settings as a message."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from barnabas_common.messages.configs import AlterConfig, AlterConfigResource


@dataclass(frozen=True)
class ConfigResource:
    """A topic, a broker, or all brokers (the resource type "broker" with an empty name)."""

    resource_type: str
    name: str

    @classmethod
    def topic(cls, name: str) -> Self:
        """The settings of one topic."""
        return cls("topic", name)

    @classmethod
    def broker(cls, broker_id: int) -> Self:
        """The settings of one broker, which come before those of all brokers."""
        return cls("broker", str(broker_id))

    @classmethod
    def all_brokers(cls) -> Self:
        """The settings of all brokers, those that join later included."""
        return cls("broker", "")

    def __str__(self) -> str:
        return f"{self.resource_type} {self.name}" if self.name else "all brokers"


def alter_resource(
    resource: ConfigResource,
    changes: Mapping[str, str | None],
    append: Mapping[str, str] | None = None,
    subtract: Mapping[str, str] | None = None,
) -> AlterConfigResource:
    """The changes of one resource as a message; None deletes an override."""
    return AlterConfigResource(
        resource.resource_type,
        resource.name,
        [
            *(
                AlterConfig(name, "delete") if value is None else AlterConfig(name, "set", value)
                for name, value in changes.items()
            ),
            *(AlterConfig(name, "append", value) for name, value in (append or {}).items()),
            *(AlterConfig(name, "subtract", value) for name, value in (subtract or {}).items()),
        ],
    )
