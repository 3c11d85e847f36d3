"""Messages of the shutdown protocol (``quiescence.py``), and their encoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias

from ...base.errors import SerializationError
from ...proto.rpc_pb2 import QuiescenceMessage


class Counts(NamedTuple):
    """Work of one worker for others so far.

    Attributes:
        peers: by number, how many control messages were sent to that worker, and how many were received from it. Only control
            messages are counted, because they arrive unless one of the two workers is lost.
        open: how many things may still cause a message: calls under way, handlers that run, messages not acknowledged.
    """

    peers: Mapping[int, tuple[int, int]]
    open: int


@dataclass(slots=True)
class Ready:
    """Tell the leader that user code of the sender has called shutdown."""

    kind: ClassVar[int] = 1


@dataclass(slots=True)
class AskCounts:
    """Ask a worker, as its leader, for its counts. It answers when it knows of these losses too."""

    kind: ClassVar[int] = 2
    round: int
    lost: list[int] = field(default_factory=list)


@dataclass(slots=True)
class CountsReport:
    """Answer `AskCounts` with the counts for that round."""

    kind: ClassVar[int] = 3
    round: int
    counts: Counts


@dataclass(slots=True)
class Go:
    """Let a worker leave: no worker has work any more."""

    kind: ClassVar[int] = 4


@dataclass(slots=True)
class Inquiry:
    """Ask the leader which workers it waits for."""

    kind: ClassVar[int] = 5


@dataclass(slots=True)
class Missing:
    """Answer `Inquiry` with the numbers of these workers."""

    kind: ClassVar[int] = 6
    numbers: list[int]


Message: TypeAlias = Ready | AskCounts | CountsReport | Go | Inquiry | Missing


def encode_message(message: Message) -> bytes:
    """Return a message as the bytes of its protobuf form."""
    out = QuiescenceMessage(kind=message.kind)
    if isinstance(message, (AskCounts, CountsReport)):
        out.round = message.round
    if isinstance(message, AskCounts):
        out.numbers.extend(message.lost)
    if isinstance(message, Missing):
        out.numbers.extend(message.numbers)
    if isinstance(message, CountsReport):
        out.open = message.counts.open
        for number, (sent, received) in message.counts.peers.items():
            out.counts.add(number=number, sent=sent, received=received)
    return out.SerializeToString()


def decode_message(data: bytes) -> Message:
    """Return the message in ``data``.

    Raises:
        SerializationError: the kind of the message is unknown.
    """
    given = QuiescenceMessage.FromString(data)
    peers = {count.number: (count.sent, count.received) for count in given.counts}
    messages: dict[int, Message] = {
        Ready.kind: Ready(),
        AskCounts.kind: AskCounts(given.round, list(given.numbers)),
        CountsReport.kind: CountsReport(given.round, Counts(peers, given.open)),
        Go.kind: Go(),
        Inquiry.kind: Inquiry(),
        Missing.kind: Missing(list(given.numbers)),
    }
    if given.kind not in messages:
        raise SerializationError(
            f"a message of shutdown has the unknown kind {given.kind}; use one version of telegrad"
        )
    return messages[given.kind]
