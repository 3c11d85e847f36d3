"""Bodies that need no pickler of ours: calls by name and results of which all parts are tensors, or all plain values, or none.

Most small calls are of the first kind, and have no pickle at all: the name of the function stands in its place, and the
arguments are the tensors of the table. Those of plain values are pickled by C code alone.
"""

from __future__ import annotations

import pickle
from typing import Any

from ...core.extend import Tensor
from ..messages import Incoming, Outgoing
from .header import Flag

PLAIN_TYPES = frozenset((type(None), bool, int, float, complex, str, bytes))
LONGEST = 4096  # of a plain text or bytes; longer ones are not copied
MOST = 64  # arguments to look at


def pack_bare(message: Outgoing, body: Any, limit: int) -> bool:
    """Put a body into a message, if it is of one of these kinds.

    Args:
        message: gets the body.
        body: what to send.
        limit: bytes of the largest message.

    Returns:
        False if it is of another kind, or may be too large.
    """
    kind = type(body)
    if kind is tuple and len(body) == 3:
        name, arguments, named = body
        if type(name) is not str or type(arguments) is not tuple or type(named) is not dict or named:
            return False
        if not arguments or type(arguments[0]) is Tensor:
            room = limit - len(name)
            if (
                not name.isascii()
                or not name
                or room < 0
                or (arguments and not _pack_tensors(message, arguments, room))
            ):
                return False
            message.pickled = (name.encode(),)
            message.flags |= Flag.BARE | Flag.PLAIN
            return True
        return _pack_plain(message, body, (name, *arguments), limit)
    if body is None:
        message.flags |= Flag.EMPTY
        return True
    if kind is Tensor and _pack_tensors(message, (body,), limit):
        message.pickled = (b"",)
        message.flags |= Flag.BARE | Flag.PLAIN
        return True
    return kind in PLAIN_TYPES and _pack_plain(message, body, (body,), limit)


def open_bare(message: Incoming) -> Any:
    """Return the body of a message with ``Flag.BARE``, whose tensors are in place."""
    name = str(message.pickled, "ascii")
    return (name, tuple(message.tensors), {}) if name else message.tensors[0]


def _pack_tensors(message: Outgoing, tensors: tuple[Any, ...], limit: int) -> bool:
    size = 0
    if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
        return False  # a pickle keeps that they are one object
    for tensor in tensors:
        if type(tensor) is not Tensor or tensor.is_sparse or tensor.__dict__:
            return False
        size += tensor._array.nbytes
    if size > limit:
        return False
    message.tensors = tensors
    return True


def _pack_plain(message: Outgoing, body: Any, parts: tuple[Any, ...], limit: int) -> bool:
    if len(parts) > MOST:
        return False
    for part in parts:
        kind = type(part)
        if kind not in PLAIN_TYPES or ((kind is str or kind is bytes) and len(part) > LONGEST):
            return False
    data = pickle.dumps(body, 5)
    if len(data) > limit:
        return False
    message.pickled = (data,)
    message.flags |= Flag.PLAIN
    return True
