from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeConfigsRequest(_message.Message):
    __slots__ = ("topics", "broker", "cluster_default")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    BROKER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    broker: bool
    cluster_default: bool
    def __init__(self, topics: _Optional[_Iterable[str]] = ..., broker: bool = ..., cluster_default: bool = ...) -> None: ...

class ConfigDescription(_message.Message):
    __slots__ = ("name", "value", "source", "doc", "is_dynamic")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    IS_DYNAMIC_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    source: str
    doc: str
    is_dynamic: bool
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ..., source: _Optional[str] = ..., doc: _Optional[str] = ..., is_dynamic: bool = ...) -> None: ...

class DescribedConfigs(_message.Message):
    __slots__ = ("topic", "error_code", "error_message", "configs")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    error_code: int
    error_message: str
    configs: _containers.RepeatedCompositeFieldContainer[ConfigDescription]
    def __init__(self, topic: _Optional[str] = ..., error_code: _Optional[int] = ..., error_message: _Optional[str] = ..., configs: _Optional[_Iterable[_Union[ConfigDescription, _Mapping]]] = ...) -> None: ...

class DescribeConfigsResponse(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[DescribedConfigs]
    def __init__(self, resources: _Optional[_Iterable[_Union[DescribedConfigs, _Mapping]]] = ...) -> None: ...

class AlterConfig(_message.Message):
    __slots__ = ("name", "operation", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    operation: str
    value: str
    def __init__(self, name: _Optional[str] = ..., operation: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class AlterConfigResource(_message.Message):
    __slots__ = ("resource_type", "name", "changes")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    resource_type: str
    name: str
    changes: _containers.RepeatedCompositeFieldContainer[AlterConfig]
    def __init__(self, resource_type: _Optional[str] = ..., name: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[AlterConfig, _Mapping]]] = ...) -> None: ...

class IncrementalAlterConfigsRequest(_message.Message):
    __slots__ = ("validate_only", "resources")
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    validate_only: bool
    resources: _containers.RepeatedCompositeFieldContainer[AlterConfigResource]
    def __init__(self, validate_only: bool = ..., resources: _Optional[_Iterable[_Union[AlterConfigResource, _Mapping]]] = ...) -> None: ...

class AlterConfigResult(_message.Message):
    __slots__ = ("resource_type", "name", "error_code", "error_message")
    RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    resource_type: str
    name: str
    error_code: int
    error_message: str
    def __init__(self, resource_type: _Optional[str] = ..., name: _Optional[str] = ..., error_code: _Optional[int] = ..., error_message: _Optional[str] = ...) -> None: ...

class IncrementalAlterConfigsResponse(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[AlterConfigResult]
    def __init__(self, resources: _Optional[_Iterable[_Union[AlterConfigResult, _Mapping]]] = ...) -> None: ...
