from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GlobalId(_message.Message):
    __slots__ = ("worker", "incarnation", "number")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    worker: int
    incarnation: int
    number: int
    def __init__(self, worker: _Optional[int] = ..., incarnation: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class OwnershipMessages(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[OwnershipMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[OwnershipMessage, _Mapping]]] = ...) -> None: ...

class OwnershipMessage(_message.Message):
    __slots__ = ("kind", "rref_id", "fork_id", "transfer", "received", "reason")
    KIND_FIELD_NUMBER: _ClassVar[int]
    RREF_ID_FIELD_NUMBER: _ClassVar[int]
    FORK_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    kind: int
    rref_id: GlobalId
    fork_id: GlobalId
    transfer: int
    received: bool
    reason: str
    def __init__(self, kind: _Optional[int] = ..., rref_id: _Optional[_Union[GlobalId, _Mapping]] = ..., fork_id: _Optional[_Union[GlobalId, _Mapping]] = ..., transfer: _Optional[int] = ..., received: bool = ..., reason: _Optional[str] = ...) -> None: ...
