"""Heads of the bundles of a mesh call: what a request tells a worker of its subtree, and an answer of its results."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ..wire.bundle import HEAD as BUNDLE_HEAD
from ..wire.bundle import ROW, Content
from .tree import Member, Subtree

REQUEST = struct.Struct(
    "<QQQIIBBHI"
)  # caller, id, ids below are over; position, members; folds, parts; bytes of the name, and of what tells of shared arrays
LEAF = struct.Struct(BUNDLE_HEAD.format + REQUEST.format.lstrip("<"))  # the front of the body of a request
MEMBER = struct.Struct("<IIH")
KEY = struct.Struct("<QQ")
COUNT = struct.Struct("<I")
COUNT_AT = BUNDLE_HEAD.size + struct.calcsize("<QQQI")
COUNT_SPAN = slice(COUNT_AT, COUNT_AT + COUNT.size)  # of the number of members in the body of a request
OF_LEAF = COUNT.pack(1)  # that number for a worker that has no other below it
_member = partial(tuple.__new__, Member)  # without a call of Python code
ANSWER_HEAD = struct.Struct("<?I")  # whether there are more, number of results
MESSAGE = struct.Struct("<BQQ")  # kind, caller, id

END, RELEASE = 1, 2  # kinds of control messages: one call is given up; all calls below an id are over


class RequestHead(NamedTuple):
    """Head of the request of one hop.

    Attributes:
        caller: number of the worker that made the call.
        id: number of the call there, counting up.
        over: calls of lower numbers are over.
        held: how many of the receiver's results the sender has.
        folds: whether results are added up on the way.
        parts: whether the bodies after the first are parts of scattered arguments, one for each member.
        name: of the function, for people.
        subtree: the receiver and the members below it.
        shared: tells of the arrays that are in a segment (``SharedCall.encode``); empty if there are none.
    """

    caller: int
    id: int
    over: int
    held: int
    folds: bool
    parts: bool
    name: str
    subtree: Subtree
    shared: bytes = b""

    def encode(self, subtree: Subtree, over: int, held: int = 0, shared: bytes = b"") -> bytes:
        """Return the head of a request of the same call as bytes.

        Args:
            subtree, over, held, shared: those of the request.
        """
        return self.front(len(subtree), over, held, shared) + pack_members(subtree)

    def front(self, count: int, over: int, held: int = 0, shared: bytes = b"") -> bytes:
        """Return what ``encode`` returns for a subtree of so many members, without the members.

        Args:
            count: number of the members.
            over, held, shared: those of the request.
        """
        name = self.name.encode()[:1000]
        numbers = self.caller, self.id, over, held, count, self.folds, self.parts
        return b"".join((REQUEST.pack(*numbers, len(name), len(shared)), name, shared))

    @classmethod
    def decode(cls, data: bytes) -> RequestHead:
        """Return the head that ``encode`` encoded."""
        caller, number, over, held, count, folds, parts, length, size = REQUEST.unpack_from(data)
        named = REQUEST.size + length
        start = named + size
        members = tuple(map(_member, MEMBER.iter_unpack(data[start:])))
        if len(members) != count or not members:
            raise ValueError(f"a mesh call has {len(members)} members, its head says {count}")
        name = data[REQUEST.size : named].decode(errors="replace")
        fields = caller, number, over, held, bool(folds), bool(parts), name, members, data[named:start]
        return tuple.__new__(cls, fields)  # as ``_member``


class LeafRequest(NamedTuple):
    """Request to a worker that has no other below it.

    Attributes:
        caller, id, over, name: as in ``RequestHead``.
        place: of the worker in the mesh.
        call: the call.
        shared: as in ``RequestHead``.
    """

    caller: int
    id: int
    over: int
    name: str
    place: int
    call: Content
    shared: bytes


_leaf_request = partial(tuple.__new__, LeafRequest)  # as ``_member``


def open_leaf_request(body: Any) -> LeafRequest | None:
    """Open the body of a request to a worker that has no other below it, without attachments. Most requests are such.

    Returns:
        ``None`` if it is another one: ``open_bundle`` and ``RequestHead.decode`` open each.
    """
    length, contents, caller, number, over, held, members, _, parts, name, told = LEAF.unpack_from(body)
    end = BUNDLE_HEAD.size + length
    if members != 1 or contents != 1 or held or parts or length != REQUEST.size + name + told + MEMBER.size:
        return None
    flags, *beside, size = ROW.unpack_from(body, end)
    start = end + ROW.size
    if any(beside) or start + size != len(body):
        return None
    named, row = LEAF.size + name, end - MEMBER.size
    text = str(body[LEAF.size : named], "utf-8", "replace")
    place = MEMBER.unpack_from(body, row)[1]
    content = Content(flags, (memoryview(body)[start:],))
    return _leaf_request((caller, number, over, text, place, content, bytes(body[named:row]) if told else b""))


def pack_members(subtree: Subtree) -> bytes:
    """Return the members of a subtree, as they are in the head of a request."""
    return b"".join([MEMBER.pack(*member) for member in subtree])


def key_of(body: Any) -> tuple[int, int]:
    """Return the number of the caller and the id of the call, of the body of a request that is not opened."""
    caller, number = KEY.unpack_from(body, BUNDLE_HEAD.size)
    return caller, number


def encode_answer(indexes: Sequence[int], more: bool) -> bytes:
    """Return the head of an answer: the places in the mesh of its results, and whether there are more."""
    return ANSWER_HEAD.pack(more, len(indexes)) + struct.pack(f"<{len(indexes)}I", *indexes)


def decode_answer(data: bytes) -> tuple[tuple[int, ...], bool]:
    """Return the places and whether there are more."""
    more, count = ANSWER_HEAD.unpack_from(data)
    return struct.unpack_from(f"<{count}I", data, ANSWER_HEAD.size), more


def encode_release(caller: int, over: int, numbers: Sequence[int]) -> bytes:
    """Return the control message that ends calls.

    Args:
        caller: number of the worker that made them.
        over: all its calls below this id are over.
        numbers: the receiver, and the workers that it tells.
    """
    return MESSAGE.pack(RELEASE, caller, over) + struct.pack(f"<{len(numbers)}I", *numbers)


def encode_end(caller: int, number: int) -> bytes:
    """Return the control message by which one call is given up."""
    return MESSAGE.pack(END, caller, number)


def decode_message(data: bytes) -> tuple[int, int, int, tuple[int, ...]]:
    """Return kind, caller, id and workers of a control message."""
    kind, caller, number = MESSAGE.unpack_from(data)
    return kind, caller, number, struct.unpack(f"<{(len(data) - MESSAGE.size) // 4}I", data[MESSAGE.size :])
