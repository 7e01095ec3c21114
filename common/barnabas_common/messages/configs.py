"""DescribeConfigs and IncrementalAlterConfigs: read and change settings (service Admin)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DescribeConfigsRequest:
    """The effective configuration of topics, and of the asked broker when `broker` is set; with
    `cluster_default`, the settings for all brokers."""

    topics: list[str] = field(default_factory=list)
    broker: bool = False
    cluster_default: bool = False


@dataclass(slots=True)
class ConfigDescription:
    """`source` is where the value was found: "topic", "broker-dynamic", "cluster-default",
    "static" (the broker's file) or "default"."""

    name: str
    value: str
    source: str
    doc: str = ""
    is_dynamic: bool = False


@dataclass(slots=True)
class DescribedConfigs:
    """`topic` is empty for the broker's own and the cluster's default."""

    topic: str
    error_code: int = 0
    error_message: str = ""
    configs: list[ConfigDescription] = field(default_factory=list)


@dataclass(slots=True)
class DescribeConfigsResponse:
    resources: list[DescribedConfigs] = field(default_factory=list)


@dataclass(slots=True)
class AlterConfig:
    """`operation` is "set", "delete", and for lists "append" or "subtract" (KIP-339)."""

    name: str
    operation: str
    value: str = ""


@dataclass(slots=True)
class AlterConfigResource:
    """`resource_type` is "topic" or "broker"; the empty name of a broker stands for all brokers."""

    resource_type: str
    name: str
    changes: list[AlterConfig] = field(default_factory=list)


@dataclass(slots=True)
class IncrementalAlterConfigsRequest:
    """The changes of each resource are atomic."""

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
