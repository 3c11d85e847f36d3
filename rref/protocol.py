"""Control messages of the ownership protocol, and the events and instructions of its machine.

Control messages have a ``kind`` for their encoding. The machine matches them by their type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ..core.futures import Future
from ..proto import rref_pb2 as pb
from ..rpc.extend import Received as Received
from ..rpc.extend import Send as Send
from ..rpc.extend import WorkerLost as WorkerLost
from .forks import Fork
from .ids import ForkId, GlobalId, RRefId, WorkerKey
from .transfers import ReferenceTransfer

# -- control messages


@dataclass(slots=True)
class Register:
    """User to owner: register this fork, which another user gave me."""

    kind: ClassVar[int] = 1
    rref_id: RRefId
    fork_id: ForkId


@dataclass(slots=True)
class Accept:
    """Owner to user: your fork is registered, and keeps the value alive."""

    kind: ClassVar[int] = 2
    fork_id: ForkId


@dataclass(slots=True)
class Reject:
    """Owner to user: there is no value for your fork, and there will be none."""

    kind: ClassVar[int] = 3
    fork_id: ForkId
    reason: str


@dataclass(slots=True)
class Acknowledge:
    """Holder of a fork to the worker that gave it: the owner has answered, so do not keep your own fork for this one."""

    kind: ClassVar[int] = 4
    fork_id: ForkId


@dataclass(slots=True)
class Delete:
    """User to owner: this registered fork is deleted."""

    kind: ClassVar[int] = 5
    rref_id: RRefId
    fork_id: ForkId


@dataclass(slots=True)
class Cancel:
    """Sender of a transfer to its receiver: refuse it if it has not arrived.

    ``rref_id``: the reference that its message creates, if any; without the message it will never exist.
    """

    kind: ClassVar[int] = 6
    transfer: int
    rref_id: RRefId | None = None


@dataclass(slots=True)
class CancelResult:
    """Receiver of a transfer to its sender: says whether it arrived before the ``Cancel``, which then has no effect."""

    kind: ClassVar[int] = 7
    transfer: int
    received: bool


Message: TypeAlias = Register | Accept | Reject | Acknowledge | Delete | Cancel | CancelResult
_MESSAGES: dict[int, type[Any]] = {
    each.kind: each for each in (Register, Accept, Reject, Acknowledge, Delete, Cancel, CancelResult)
}


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Return control messages as bytes."""
    out = pb.OwnershipMessages()
    for message in messages:
        _write(message, out.messages.add())
    return out.SerializeToString()


def _write(message: Message, out: pb.OwnershipMessage) -> None:
    out.kind = message.kind
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, GlobalId):
            target = getattr(out, name)
            target.worker, target.incarnation, target.number = value
        elif value is not None:
            setattr(out, name, value)


def decode_messages(data: bytes) -> list[Message]:
    """Return the messages that ``encode_messages`` encoded."""
    return [_read(given) for given in pb.OwnershipMessages.FromString(data).messages]


def _read(given: pb.OwnershipMessage) -> Message:
    kind = _MESSAGES[given.kind]
    message: Message = kind(**{name: _field(given, name) for name in kind.__slots__})
    return message


def _field(given: pb.OwnershipMessage, name: str) -> Any:
    value = getattr(given, name)
    if not isinstance(value, pb.GlobalId):
        return value
    return GlobalId(value.worker, value.incarnation, value.number) if given.HasField(name) else None


# -- events


class Sending(NamedTuple):
    """A message with references is about to leave: number its transfer and make its entries."""

    transfer: ReferenceTransfer


class ReferencesArrived(NamedTuple):
    """A message with references arrived, and nothing in it is unpickled yet: adopt its references."""

    transfer: ReferenceTransfer


class Delivered(NamedTuple):
    """A sent transfer has arrived. This is known for example by the reply to its message."""

    transfer: ReferenceTransfer


class NotDelivered(NamedTuple):
    """A transfer was not sent, or it is unknown whether it arrived."""

    transfer: ReferenceTransfer


class Dropped(NamedTuple):
    """The ``RRef`` of a fork is gone. Repeating this event does nothing."""

    fork: Fork


Event: TypeAlias = (
    Sending
    | ReferencesArrived
    | Delivered
    | NotDelivered
    | Received[WorkerKey, Message]
    | Dropped
    | WorkerLost[WorkerKey]
)

# -- instructions


@dataclass(slots=True)
class Confirmed:
    """The owner has registered this fork: fetches may be sent for it."""

    fork: Fork


@dataclass(slots=True)
class ForkFailed:
    """Fail a fork: it has no value, and each use raises ``reason``. ``lost``: the worker whose loss is the cause, if any."""

    fork: Fork
    reason: str
    lost: WorkerKey | None = None


@dataclass(slots=True)
class Free:
    """Free the value: the last fork is gone. Given once for each reference that existed here."""

    rref_id: RRefId
    value: Future[Any] | None = field(default=None, compare=False)


@dataclass(slots=True)
class NeverCreated:
    """Fail the fetches that wait for a value: its creating call did not arrive, and would be refused."""

    rref_id: RRefId
    value: Future[Any] | None = field(default=None, compare=False)


@dataclass(slots=True)
class NeverMade:
    """Fail a value: this worker's creating call to itself did not arrive. The reference exists."""

    rref_id: RRefId
    value: Future[Any] = field(compare=False)


Instruction: TypeAlias = Send[WorkerKey, Message] | Confirmed | ForkFailed | Free | NeverCreated | NeverMade
