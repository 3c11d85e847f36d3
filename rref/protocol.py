"""The words of the ownership protocol: ids, entries of carriers, messages, and instructions to the driver.

Messages have a ``kind`` for the wire; the machine itself matches on their type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ..core.futures import Future
from .ids import ForkId, RRefId, WorkerKey


class How(IntEnum):
    """What a reference in a carrier asks of its receiver."""

    CREATED = 0  # receiver is the owner: make the entry; the fork is the sender's, not a handle for the receiver
    REGISTERED = 1  # the owner sends it and has registered the fork: it is confirmed on arrival
    CLAIMED = 2  # the owner does not know of the fork yet: claim it


class Entry(NamedTuple):
    """One reference in a carrier."""

    rref_id: RRefId
    fork_id: ForkId
    owner: WorkerKey
    how: How


class Carrier:
    """One message with references, from here to ``to``. ``number`` and ``entries`` travel with it."""

    __slots__ = ("entries", "number", "to", "voiding")

    def __init__(self, to: WorkerKey, number: int, entries: list[Entry]) -> None:
        self.to = to
        self.number = number
        self.entries = entries
        self.voiding = False  # we asked whether it arrived

    def __repr__(self) -> str:
        return f"Carrier(to={self.to}, number={self.number}, {len(self.entries)} entries)"


@dataclass(slots=True)
class Claim:
    """User to owner: I hold this fork, which a user gave me."""

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
class ChildAccepted:
    """Receiver of a reference to its forker: the owner has answered, you need not keep yours for my sake."""

    kind: ClassVar[int] = 4
    fork_id: ForkId


@dataclass(slots=True)
class Delete:
    """User to owner: this registered fork is gone."""

    kind: ClassVar[int] = 5
    rref_id: RRefId
    fork_id: ForkId


@dataclass(slots=True)
class Void:
    """Sender of a carrier to its receiver: refuse it if it has not arrived. ``creates``: the reference that it would
    have created, and now never will."""

    kind: ClassVar[int] = 6
    carrier: int
    creates: RRefId | None = None


@dataclass(slots=True)
class Voided:
    """The answer: ``received`` says that the carrier came first, and all goes on as if nothing had been asked."""

    kind: ClassVar[int] = 7
    carrier: int
    received: bool


Message: TypeAlias = Claim | Accept | Reject | ChildAccepted | Delete | Void | Voided


@dataclass(slots=True)
class Send:
    """Post ``message`` to ``to`` on the control queue."""

    to: WorkerKey
    message: Message


@dataclass(slots=True)
class Free:
    """The last fork is gone: let go of the value. Said once for each reference that existed here."""

    rref_id: RRefId
    value: Future[Any] | None = field(default=None, compare=False)


@dataclass(slots=True)
class NeverCreated:
    """The creating call did not arrive and is refused if it still does: fail the fetches that wait for the value."""

    rref_id: RRefId
    value: Future[Any] | None = field(default=None, compare=False)


@dataclass(slots=True)
class Confirmed:
    """The owner knows of this handle: fetches may be sent for it."""

    fork_id: ForkId


@dataclass(slots=True)
class Fail:
    """This handle has no value any more; every use of it raises ``message``. ``lost``: the worker whose loss it was,
    if it was one."""

    fork_id: ForkId
    message: str
    lost: WorkerKey | None = None


Instruction: TypeAlias = Send | Free | NeverCreated | Confirmed | Fail
