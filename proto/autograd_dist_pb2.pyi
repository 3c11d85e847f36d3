from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

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
