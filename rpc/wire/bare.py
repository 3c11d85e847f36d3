"""Bodies that need no pickler of ours: calls by name, and results, all of whose parts are tensors or plain values.

Most small calls have only tensors as arguments. They have no pickle: the name of the function is in its place, and the
arguments are the tensors of the table. Plain values are pickled by C code alone; beside tensors, with the places of these. A
body of ``None`` has no bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, TypeAlias

from ...core.extend import Tensor
from .header import Flag
from .messages import NO_ATTACHMENTS, Attachments, Incoming, Outgoing

BARE_TYPES = frozenset((type(None), bool, int, float, complex, str, bytes))
LONGEST_BARE = 4096  # characters or bytes of a plain value; longer ones are not copied
MOST_BARE = 64  # parts of a body or of a list in it; one with more is left to the pickler
PICKLE = 0x80  # first byte of a pickle, and of no name
Content: TypeAlias = tuple[bytes, "tuple[Any, ...] | None"]


def pack_bare(message: Outgoing, body: Any, limit: int) -> bool:
    """Put a body into a message, if it needs no pickler of ours.

    Args:
        message: gets the body.
        body: the name, arguments and keyword arguments of a call, or a result.
        limit: bytes of the largest message.

    Returns:
        False if the body needs the pickler, or may be too large.
    """
    if body is None:
        content: Content | None = (b"", ())
    elif type(body) is Tensor:
        content = (b"", (body,))
    elif type(body) is tuple and len(body) == 3 and type(body[0]) is str:
        content = _call(*body)
    else:
        content = (pickle.dumps(body, 5), None) if _are_plain((body,)) else None
    if content is None:
        return False
    pickled, tensors = content
    if len(pickled) > limit or (tensors and not _pack_tensors(message, tensors, limit - len(pickled))):
        return False
    message.pickled = (pickled,)
    message.flags |= Flag.PLAIN if tensors is None else Flag.BARE | Flag.PLAIN
    return True


def open_bare(message: Incoming) -> Any:
    """Return the body of a message with ``Flag.BARE``, whose tensors are in place."""
    pickled, tensors = message.pickled, message.attached.tensors
    if not pickled:
        return tensors[0] if tensors else None
    if pickled[0] != PICKLE:
        return str(pickled, "ascii"), tuple(tensors), {}
    name, arguments, named, places = pickle.loads(pickled)
    for place, tensor in zip(places, tensors):
        arguments[place] = tensor
    return name, tuple(arguments), named


def _call(name: str, arguments: Any, named: Any) -> Content | None:
    """Return the content of a call, if it has one: its name or pickle, and its tensors (``None`` if it is a plain body)."""
    if type(arguments) is not tuple or type(named) is not dict:
        return None
    places = []  # of tensors
    for place, argument in enumerate(arguments):  # not a comprehension, which costs more than most of these loops
        if type(argument) is Tensor:
            places.append(place)
    if len(places) == len(arguments) and not named and name and name.isascii():
        return name.encode(), arguments
    rest = list(arguments)
    for place in places:
        rest[place] = None
    if not _are_plain((name, *rest, *named.values())):
        return None
    if not places:
        return pickle.dumps((name, arguments, named), 5), None
    return pickle.dumps((name, rest, named, places), 5), tuple([arguments[place] for place in places])


def _pack_tensors(message: Outgoing, tensors: tuple[Any, ...], limit: int) -> bool:
    size = 0
    if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
        return False  # one object twice: only a pickle keeps it one
    for tensor in tensors:
        if type(tensor) is not Tensor or tensor.is_sparse or tensor.__dict__:
            return False
        size += tensor._array.nbytes
    if size > limit:
        return False
    if (attached := message.attached) is NO_ATTACHMENTS:  # else it has notes
        message.attached = attached = Attachments()
    attached.tensors = tensors
    return True


def _are_plain(values: Sequence[Any], lists: bool = True) -> bool:
    """Return whether all are plain: of ``BARE_TYPES``, or lists or tuples of such, and neither long nor many."""
    if len(values) > MOST_BARE:
        return False
    for value in values:
        kind = type(value)
        if kind in BARE_TYPES:
            if (kind is str or kind is bytes) and len(value) > LONGEST_BARE:
                return False
        elif not (lists and (kind is list or kind is tuple) and _are_plain(value, False)):
            return False
    return True
