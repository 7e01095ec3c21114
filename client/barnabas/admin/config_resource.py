"""The resources that have settings, and a change of settings as a message."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.messages.configs import AlterConfig, AlterConfigResource

from barnabas.cluster.options import check_str


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
    changes: Mapping[str, str | None] | None = None,
    append: Mapping[str, str] | None = None,
    subtract: Mapping[str, str] | None = None,
) -> AlterConfigResource:
    """The changes of one resource as a message; None deletes an override."""
    _check_resource(resource)
    _check_settings("append", append)
    _check_settings("subtract", subtract)
    _check_settings("changes", changes, may_delete=True)
    return AlterConfigResource(
        resource.resource_type,
        resource.name,
        [
            *(
                AlterConfig(name, "delete") if value is None else AlterConfig(name, "set", value)
                for name, value in (changes or {}).items()
            ),
            *(AlterConfig(name, "append", value) for name, value in (append or {}).items()),
            *(AlterConfig(name, "subtract", value) for name, value in (subtract or {}).items()),
        ],
    )


def _check_resource(resource: object) -> None:
    if not isinstance(resource, ConfigResource):
        raise InvalidArgumentError(f"resource must be a ConfigResource, not {resource!r}")
    check_str("the type of a resource", resource.resource_type)
    check_str("the name of a resource", resource.name)
    if resource.resource_type == "broker" and not (resource.name + "0").isdecimal():
        raise InvalidArgumentError(f"a broker's name is its id, not {resource.name!r}")


def _check_settings(what: str, settings: object, may_delete: bool = False) -> None:
    """Raise `InvalidArgumentError` unless it is a dict of str, or None."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InvalidArgumentError(f"{what} is a dict of names and values, not {settings!r}")
    for name, value in (settings or {}).items():
        check_str(f"a name in {what}", name)
        if value is not None or not may_delete:
            check_str(f"{what}: the value of {name}", value)
