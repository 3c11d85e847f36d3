from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerRecord(_message.Message):
    __slots__ = ("name", "rank", "incarnation", "identity", "process_id", "addresses", "certificate_name", "main_script", "python", "device_maps", "number")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_NAME_FIELD_NUMBER: _ClassVar[int]
    MAIN_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MAPS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    name: str
    rank: int
    incarnation: int
    identity: bytes
    process_id: int
    addresses: _containers.RepeatedScalarFieldContainer[str]
    certificate_name: str
    main_script: str
    python: str
    device_maps: _containers.RepeatedCompositeFieldContainer[DeviceMap]
    number: int
    def __init__(self, name: _Optional[str] = ..., rank: _Optional[int] = ..., incarnation: _Optional[int] = ..., identity: _Optional[bytes] = ..., process_id: _Optional[int] = ..., addresses: _Optional[_Iterable[str]] = ..., certificate_name: _Optional[str] = ..., main_script: _Optional[str] = ..., python: _Optional[str] = ..., device_maps: _Optional[_Iterable[_Union[DeviceMap, _Mapping]]] = ..., number: _Optional[int] = ...) -> None: ...

class DeviceMap(_message.Message):
    __slots__ = ("to", "here", "there")
    TO_FIELD_NUMBER: _ClassVar[int]
    HERE_FIELD_NUMBER: _ClassVar[int]
    THERE_FIELD_NUMBER: _ClassVar[int]
    to: str
    here: _containers.RepeatedScalarFieldContainer[str]
    there: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, to: _Optional[str] = ..., here: _Optional[_Iterable[str]] = ..., there: _Optional[_Iterable[str]] = ...) -> None: ...

class Introduction(_message.Message):
    __slots__ = ("worker", "expected_identity", "address")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    worker: WorkerRecord
    expected_identity: bytes
    address: str
    def __init__(self, worker: _Optional[_Union[WorkerRecord, _Mapping]] = ..., expected_identity: _Optional[bytes] = ..., address: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("worker", "refusal")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    worker: WorkerRecord
    refusal: str
    def __init__(self, worker: _Optional[_Union[WorkerRecord, _Mapping]] = ..., refusal: _Optional[str] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("world_size", "purpose", "timeout")
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    world_size: int
    purpose: str
    timeout: float
    def __init__(self, world_size: _Optional[int] = ..., purpose: _Optional[str] = ..., timeout: _Optional[float] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("waiting", "refusal", "workers")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    waiting: str
    refusal: str
    workers: bytes
    def __init__(self, waiting: _Optional[str] = ..., refusal: _Optional[str] = ..., workers: _Optional[bytes] = ...) -> None: ...

class WorkerTable(_message.Message):
    __slots__ = ("records", "lengths", "by_name", "ranked")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    BY_NAME_FIELD_NUMBER: _ClassVar[int]
    RANKED_FIELD_NUMBER: _ClassVar[int]
    records: bytes
    lengths: _containers.RepeatedScalarFieldContainer[int]
    by_name: _containers.RepeatedScalarFieldContainer[int]
    ranked: bool
    def __init__(self, records: _Optional[bytes] = ..., lengths: _Optional[_Iterable[int]] = ..., by_name: _Optional[_Iterable[int]] = ..., ranked: bool = ...) -> None: ...

class GroupMessage(_message.Message):
    __slots__ = ("joined", "known")
    JOINED_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    joined: WorkerRecord
    known: int
    def __init__(self, joined: _Optional[_Union[WorkerRecord, _Mapping]] = ..., known: _Optional[int] = ...) -> None: ...

class MembershipReport(_message.Message):
    __slots__ = ("version", "links", "lost", "gone", "asks", "heard", "checks", "leaving")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    ASKS_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    version: int
    links: _containers.RepeatedCompositeFieldContainer[LinkReport]
    lost: _containers.RepeatedCompositeFieldContainer[LostWorker]
    gone: _containers.RepeatedScalarFieldContainer[int]
    asks: _containers.RepeatedCompositeFieldContainer[Question]
    heard: _containers.RepeatedCompositeFieldContainer[Question]
    checks: _containers.RepeatedCompositeFieldContainer[Question]
    leaving: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, version: _Optional[int] = ..., links: _Optional[_Iterable[_Union[LinkReport, _Mapping]]] = ..., lost: _Optional[_Iterable[_Union[LostWorker, _Mapping]]] = ..., gone: _Optional[_Iterable[int]] = ..., asks: _Optional[_Iterable[_Union[Question, _Mapping]]] = ..., heard: _Optional[_Iterable[_Union[Question, _Mapping]]] = ..., checks: _Optional[_Iterable[_Union[Question, _Mapping]]] = ..., leaving: _Optional[_Iterable[int]] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("number", "version")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    number: int
    version: int
    def __init__(self, number: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class LinkReport(_message.Message):
    __slots__ = ("number", "finding", "reason")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FINDING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    number: int
    finding: int
    reason: str
    def __init__(self, number: _Optional[int] = ..., finding: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class LostWorker(_message.Message):
    __slots__ = ("number", "reason", "left")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    number: int
    reason: str
    left: bool
    def __init__(self, number: _Optional[int] = ..., reason: _Optional[str] = ..., left: bool = ...) -> None: ...

class QuiescenceMessage(_message.Message):
    __slots__ = ("kind", "round", "counts", "open", "numbers")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    kind: int
    round: int
    counts: _containers.RepeatedCompositeFieldContainer[PeerCount]
    open: int
    numbers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kind: _Optional[int] = ..., round: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[PeerCount, _Mapping]]] = ..., open: _Optional[int] = ..., numbers: _Optional[_Iterable[int]] = ...) -> None: ...

class PeerCount(_message.Message):
    __slots__ = ("number", "sent", "received")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    number: int
    sent: int
    received: int
    def __init__(self, number: _Optional[int] = ..., sent: _Optional[int] = ..., received: _Optional[int] = ...) -> None: ...
