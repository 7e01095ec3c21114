"""DescribeConfigs and IncrementalAlterConfigs: read and change settings (service Admin)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DescribeConfigsRequest:
    """Requests the effective configuration of topics.

    With `broker` the response also has the configuration of the broker that answers, with
    `cluster_default` the settings for all brokers.
    """

    topics: list[str] = field(default_factory=list)
    broker: bool = False
    cluster_default: bool = False


@dataclass(slots=True)
class ConfigDescription:
    """One setting; `doc` explains it, and `is_dynamic` says whether it may change at run time.

    `source` is where the value was found: "topic", "broker-dynamic", "cluster-default", "static"
    (the broker's file) or "default".
    """

    name: str
    value: str
    source: str
    doc: str = ""
    is_dynamic: bool = False


@dataclass(slots=True)
class DescribedConfigs:
    """The settings of a topic, or of the broker or all brokers; then `topic` is empty."""

    topic: str
    error_code: int = 0
    error_message: str = ""
    configs: list[ConfigDescription] = field(default_factory=list)


@dataclass(slots=True)
class DescribeConfigsResponse:
    resources: list[DescribedConfigs] = field(default_factory=list)


@dataclass(slots=True)
class AlterConfig:
    """A change; `operation` is "set", "delete" or, for lists, "append" or "subtract" (KIP-339)."""

    name: str
    operation: str
    value: str = ""


@dataclass(slots=True)
class AlterConfigResource:
    """The changes of a resource. `resource_type` is "topic" or "broker".

    The name of a broker is its id; an empty name stands for all brokers.
    """

    resource_type: str
    name: str
    changes: list[AlterConfig] = field(default_factory=list)


@dataclass(slots=True)
class IncrementalAlterConfigsRequest:
    """Changes settings, or only validates the changes; those of one resource are atomic."""

    validate_only: bool = False
    resources: list[AlterConfigResource] = field(default_factory=list)


@dataclass(slots=True)
class AlterConfigResult:
    resource_type: str
    name: str
    error_code: int = 0
    error_message: str = ""


@dataclass(slots=True)
class IncrementalAlterConfigsResponse:
    resources: list[AlterConfigResult] = field(default_factory=list)
