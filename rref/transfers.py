"""Reference transfers: the references that one message carries, and the record of which messages arrived.

The transfers from one worker to another are numbered without gaps. The sender keeps those that may not have arrived. The
receiver keeps the numbers of those that arrived, and of those that it refuses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from ..core.futures import Future
from ..rpc.extend import IntervalSet, Session
from .forks import Fork
from .ids import ForkId, GlobalId, RRefId, WorkerKey

TRANSFER_HEAD = struct.Struct("<Q")
ENTRY = struct.Struct("<IIQIIQIIB")  # reference id, fork id, owner, kind


class EntryKind(IntEnum):
    """Task that an entry of a transfer gives its receiver."""

    CREATED = 0  # the receiver is the owner: make the reference; the fork is the sender's
    REGISTERED = 1  # the sender is the owner and has registered the fork: it is confirmed on arrival
    UNREGISTERED = 2  # the owner does not know of the fork yet: ask it to register the fork
    RETURNED = 3  # the receiver is the owner: register the fork. The sender learns its arrival from the answer
    BORROWED = 4  # the receiver is the owner: use the value for this request only. No worker holds the fork


ENTRY_KINDS = tuple(EntryKind)  # by number


class Entry(NamedTuple):
    """Reference in a transfer."""

    rref_id: RRefId
    fork_id: ForkId
    owner: WorkerKey
    kind: EntryKind


class ReferenceTransfer:
    """References of one message. ``number`` and ``entries`` travel. The other attributes are the sender's or receiver's own.

    Args:
        peer: the worker at the other end.
        forks: at the sender, the forks of the message's references; at the receiver, the forks that it adopted.
        creates: the message is a creating call.
        answered: the message is a request, so its sender learns from the answer, at the latest, that it arrived.
        borrowed: at the sender, the fork of the value whose method the message calls. The receiver is its owner.
    """

    __slots__ = (
        "adopted",
        "answer_by",
        "answered",
        "borrowed",
        "cancelling",
        "created",
        "creates",
        "entries",
        "forks",
        "number",
        "peer",
        "value",
    )

    def __init__(
        self,
        peer: WorkerKey,
        forks: Iterable[Fork] = (),
        creates: bool = False,
        answered: bool = False,
        borrowed: Fork | None = None,
    ) -> None:
        self.peer = peer
        self.forks = list(forks)
        self.creates = creates
        self.answered = answered or creates or borrowed is not None
        self.borrowed = borrowed
        self.value: Future[Any] | None = (
            None  # at the receiver, the value, borrowed or to be made; ``None`` if it is gone
        )
        self.created: Fork | None = None  # at the sender, the fork of the reference that the call creates
        self.number = -1
        self.entries: list[Entry] = []
        self.answer_by: Session | None = None  # at the sender of an answer, the session by which it goes
        self.cancelling = False  # the sender has asked whether it arrived
        self.adopted = False  # the receiver has adopted it; otherwise it ignores the message

    @classmethod
    def arriving(cls, sender: WorkerKey, number: int, entries: list[Entry]) -> ReferenceTransfer:
        """Return the transfer of a message that arrived, for the receiver to adopt.

        Args:
            sender: the worker that sent the message.
            number: number of the transfer.
            entries: entries of the transfer.
        """
        transfer = cls(sender)
        transfer.number, transfer.entries = number, entries
        return transfer

    def __repr__(self) -> str:
        return f"Transfer({self.number}, peer={self.peer}, {len(self.entries)} entries)"


def session_of(transfer: ReferenceTransfer) -> Session | None:
    """Return the session by which a creating call or an answer goes; ``None`` for other calls, and if it is not chosen."""
    if (fork := transfer.created) is not None:
        return None if fork.call is None else fork.call.session
    return transfer.answer_by


class Transfers:
    """Transfers that one worker sent and received."""

    def __init__(self) -> None:
        self._open: dict[tuple[WorkerKey, int], ReferenceTransfer] = {}  # sent transfers that may not have arrived
        self._next: dict[WorkerKey, int] = {}
        self._seen: dict[WorkerKey, IntervalSet] = {}

    def add(self, transfer: ReferenceTransfer, lost: bool) -> None:
        """Number a transfer that is about to be sent, and keep it, unless its receiver is lost."""
        transfer.number = self._next.get(transfer.peer, 0)
        if not lost:
            self._next[transfer.peer] = transfer.number + 1
            self._open[transfer.peer, transfer.number] = transfer

    def take(self, to: WorkerKey, number: int) -> ReferenceTransfer | None:
        """Remove and return a sent transfer, because it is known whether it arrived; ``None`` if that was known before."""
        return self._open.pop((to, number), None)

    def find(self, to: WorkerKey, number: int) -> ReferenceTransfer | None:
        """Return a sent transfer that may not have arrived."""
        return self._open.get((to, number))

    def open_to(self, to: WorkerKey) -> list[ReferenceTransfer]:
        """Return the transfers to a worker that may not have arrived."""
        return [transfer for transfer in self._open.values() if transfer.peer == to]

    def see(self, sender: WorkerKey, number: int) -> bool:
        """Note that a transfer arrived, or that it is refused from now on; return False if one of these was noted before."""
        seen = self._seen.get(sender)
        if seen is None:
            seen = self._seen[sender] = IntervalSet()
        return seen.add(number)

    def seen(self, sender: WorkerKey) -> IntervalSet:
        """Return the numbers of a sender's transfers that arrived or are refused."""
        return self._seen.get(sender, IntervalSet())

    def worker_lost(self, key: WorkerKey) -> None:
        """Forget all transfers to and from a worker."""
        for transfer in self.open_to(key):
            del self._open[key, transfer.number]
        self._seen.pop(key, None)
        self._next.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._open.clear()
        self._seen.clear()

    def counts(self) -> dict[str, int]:
        """Return how many sent transfers may not have arrived, and for how many of these the receiver was asked."""
        return {
            "cancelling_transfers": sum(transfer.cancelling for transfer in self._open.values()),
            "open_transfers": len(self._open),
        }


def encode_transfer(transfer: ReferenceTransfer) -> bytes:
    """Return a transfer's number and entries as bytes, for the extra of its message."""
    rows = [ENTRY.pack(*entry.rref_id, *entry.fork_id, *entry.owner, entry.kind) for entry in transfer.entries]
    return TRANSFER_HEAD.pack(transfer.number) + b"".join(rows)


def decode_transfer(data: bytes, sender: WorkerKey) -> ReferenceTransfer:
    """Return the transfer that ``encode_transfer`` encoded, for its receiver."""
    (number,) = TRANSFER_HEAD.unpack_from(data)
    rows = ENTRY.iter_unpack(memoryview(data)[TRANSFER_HEAD.size :])
    new = tuple.__new__  # fast, because every call through a proxy has an entry; the classes' own are Python functions
    entries = [
        new(Entry, (new(GlobalId, row[0:3]), new(GlobalId, row[3:6]), new(WorkerKey, row[6:8]), ENTRY_KINDS[row[8]]))
        for row in rows
    ]
    return ReferenceTransfer.arriving(sender, number, entries)


def created_by(data: bytes) -> RRefId:
    """Return the id of the reference that a creating call creates: that of the first entry of its transfer."""
    return GlobalId(*ENTRY.unpack_from(data, TRANSFER_HEAD.size)[0:3])
