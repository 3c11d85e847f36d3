"""Frames of messages with a few small tensors, most of which are as an earlier one but for the bytes of the arrays.

So their tables are made once, and all is copied into one part. ``frames.py`` makes the same bytes, of any message.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.extend import Tensor
from .header import FRAME_HEAD, Flag
from .layout import may_share
from .libraries.array_library import LibraryTensor
from .tables import AFTER_TABLES, MOST_KEPT, TABLE_ALIGNMENT, TABLE_LENGTH, TABLES, encode_extras, encode_row

if TYPE_CHECKING:
    from .messages import Outgoing

MOST_SMALL = 8  # tensors of such a message
PLAIN = (Tensor, LibraryTensor)
MOST_JOINED = 16 * 1024  # bytes of such tensors, and of the pickle


class SmallStart(NamedTuple):
    """Tables of the frames with small tensors of the same kinds, and the padding before each of these."""

    tables: bytes
    paddings: tuple[bytes, ...]


def encode_small(message: Outgoing) -> bytes | None:
    """Return the frame of a message with a few small tensors in C order, and set the message's ``size``; ``None`` for others.

    Args:
        message: it has attachments.
    """
    attached = message.attached
    tensors = attached.tensors
    if not 0 < len(tensors) <= MOST_SMALL or attached.buffers:
        return None
    kinds, arrays, size = [], [], sum(map(len, message.pickled))
    for tensor in tensors:
        array = tensor._array
        if type(tensor) not in PLAIN or not array.flags.c_contiguous:
            return None
        kinds.append((array.dtype, array.shape, tensor._requires_grad))
        arrays.append(array)
        size += array.nbytes
    if size > MOST_JOINED or (len(arrays) > 1 and may_share(arrays)):
        return None
    pickled = b"".join(message.pickled)
    extras = encode_extras(attached.extras) if attached.extras else b""
    if (start := _start_of(tuple(kinds), len(attached.references), len(extras), len(pickled))) is None:
        return None
    head = FRAME_HEAD.pack(message.kind, message.flags | Flag.TABLES, message.method, message.call_id, message.timeout)
    pieces = [head, start.tables, extras, pickled]
    for padding, array in zip(start.paddings, arrays):
        pieces += (padding, array.tobytes())
    frame = b"".join(pieces)
    message.size = len(frame)
    return frame


@lru_cache(maxsize=MOST_KEPT)
def _start_of(
    kinds: tuple[tuple[np.dtype[Any], tuple[int, ...], bool], ...], references: int, extra_bytes: int, pickle_bytes: int
) -> SmallStart | None:
    rows = [encode_row(*kind) for kind in kinds]
    lengths = [dtype.itemsize * math.prod(shape) for dtype, shape, _ in kinds]
    tables = b"".join([*rows, *map(TABLE_LENGTH.pack, lengths)])
    position, paddings = AFTER_TABLES + len(tables) + extra_bytes + pickle_bytes, []
    for length in lengths:
        paddings.append(bytes(-position % TABLE_ALIGNMENT))
        position += len(paddings[-1]) + length
    counts = TABLES.pack(len(rows), references, len(rows), extra_bytes, len(tables), pickle_bytes)
    return SmallStart(counts + tables, tuple(paddings)) if all(rows) else None
