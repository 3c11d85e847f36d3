"""The ownership protocol's words as bytes: carriers as an extra of a message, control messages as protobuf."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ..proto import rref_pb2 as pb
from . import protocol as p
from .ids import GlobalId, WorkerKey

CARRIER = struct.Struct("<Q")
ENTRY = struct.Struct("<IIQIIQIIB")  # reference id, fork id, owner, how


def encode_carrier(carrier: p.Carrier) -> bytes:
    """The number and entries of a carrier."""
    rows = [ENTRY.pack(*entry.rref_id, *entry.fork_id, *entry.owner, entry.how) for entry in carrier.entries]
    return CARRIER.pack(carrier.number) + b"".join(rows)


def decode_carrier(data: bytes) -> tuple[int, list[p.Entry]]:
    """The reverse of ``encode_carrier``."""
    (number,) = CARRIER.unpack_from(data)
    return number, [_entry(row) for row in ENTRY.iter_unpack(memoryview(data)[CARRIER.size :])]


def _entry(row: Sequence[Any]) -> p.Entry:
    return p.Entry(GlobalId(*row[0:3]), GlobalId(*row[3:6]), WorkerKey(*row[6:8]), p.How(row[8]))


def encode_message(message: p.Message) -> bytes:
    """A control message."""
    out = pb.OwnershipMessage(kind=message.kind)
    for field in ("rref_id", "fork_id", "creates"):
        value = getattr(message, field, None)
        if value is not None:
            target = out.fork if field == "fork_id" else out.rref
            target.worker, target.incarnation, target.number = value
    for field in ("carrier", "received", "reason"):
        if hasattr(message, field):
            setattr(out, field, getattr(message, field))
    return out.SerializeToString()


def decode_message(data: bytes) -> p.Message:
    """The reverse of ``encode_message``."""
    given = pb.OwnershipMessage.FromString(data)
    rref_id, fork_id = _id(given.rref), _id(given.fork)
    creates = rref_id if given.HasField("rref") else None
    messages: dict[int, p.Message] = {
        p.Claim.kind: p.Claim(rref_id, fork_id),
        p.Accept.kind: p.Accept(fork_id),
        p.Reject.kind: p.Reject(fork_id, given.reason),
        p.ChildAccepted.kind: p.ChildAccepted(fork_id),
        p.Delete.kind: p.Delete(rref_id, fork_id),
        p.Void.kind: p.Void(given.carrier, creates),
        p.Voided.kind: p.Voided(given.carrier, given.received),
    }
    return messages[given.kind]


def _id(given: pb.GlobalId) -> GlobalId:
    return GlobalId(given.worker, given.incarnation, given.number)
