from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ContextMessage(_message.Message):
    __slots__ = ("kind", "context", "since")
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    kind: int
    context: int
    since: int
    def __init__(self, kind: _Optional[int] = ..., context: _Optional[int] = ..., since: _Optional[int] = ...) -> None: ...

class ContextMessages(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[ContextMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[ContextMessage, _Mapping]]] = ...) -> None: ...

class PassStopped(_message.Message):
    __slots__ = ("context", "root", "number", "oldest", "reason")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    context: int
    root: int
    number: int
    oldest: int
    reason: str
    def __init__(self, context: _Optional[int] = ..., root: _Optional[int] = ..., number: _Optional[int] = ..., oldest: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
