"""``SharedCall``: a call whose large arrays are in a segment, which the workers of one machine map in the place of copies.

Each worker opens the descriptor of the worker that sent it the call, and tells its children of its own. So whoever has the
call has the arrays, whatever becomes of other workers. A worker that cannot open it, in another container say, gets the bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from ...core.extend import Tensor
from ...core.shared_memory import Address, Segment, create_segment, open_segment
from ..lanes.addresses import first_host
from ..options import maps_memory
from ..wire.bundle import Content
from ..wire.layout import may_share
from ..wire.tables import TABLE_ALIGNMENT, TABLE_LENGTH, encode_row, read_tables

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer

SHARED_BYTES = 64 * 1024  # smaller arrays travel in the message
MOST_MAPPED = 64  # segments that live arrays map: each takes a descriptor; arrays of others are copied
SHARED = struct.Struct("<IiQQI")  # process and descriptor, device and inode; number of arrays

_mapped: WeakSet[Segment] = WeakSet()


class SharedCall:
    """Call whose large arrays are in a segment.

    Args:
        rest: the call without them.
        places: of the arrays among the tensors of the call, ascending.
        tables: their rows and lengths, as in a frame that has only them.
        segment: has their bytes; ``None`` if the call is over.
    """

    def __init__(self, rest: Content, places: Sequence[int], tables: bytes, segment: Segment | None) -> None:
        self.rest = rest
        self._places = places
        self._tables = tables
        self._segment = segment

    def captured(self) -> SharedCall:
        """Return a copy that does not share memory with the user's arrays."""
        return SharedCall(self.rest.captured(), self._places, self._tables, self._segment)

    def content(self) -> Content:
        """Return the whole call. Its arrays are its own: no other process sees what is written to them.

        Raises:
            OSError: the call is over, or no descriptor is left.
        """
        return self._content(self._memory())

    def taken(self) -> Content:
        """Return the whole call, as ``content`` does, of this object's own mapping; once, and it is over then.

        Raises:
            OSError: the call is over.
        """
        segment, self._segment = self._open_segment(), None
        return self._content(_noted(segment))

    def _content(self, memory: Any) -> Content:
        count = len(self._places)
        rows, spans, _ = read_tables(self._tables, count, count, 0)
        tensors = list(self.rest.tensors)
        for place, row, (start, _) in zip(self._places, rows, spans):
            array: Any = np.ndarray(row.shape, row.dtype, memory, start)
            tensors.insert(place, Tensor(array))
        rest = self.rest
        return Content(rest.flags, rest.pickled, tensors, rest.references, rest.buffers)

    def _open_segment(self) -> Segment:
        if (segment := self._segment) is None:
            raise FileNotFoundError("the call is over")
        return segment

    def _memory(self) -> Any:
        return _noted(open_segment(os.dup(self._open_segment().fd), private=True))

    def encode(self) -> bytes:
        """Return where another process of this machine finds the arrays, and what they are.

        Raises:
            OSError: the call is over.
        """
        segment = self._open_segment()
        first = SHARED.pack(os.getpid(), segment.fd, *segment.identity, len(self._places))
        return b"".join((first, struct.pack(f"<{len(self._places)}I", *self._places), self._tables))

    def close(self) -> None:
        """Forget the segment: no other worker gets it any more. The arrays of its contents stay."""
        if (segment := self._segment) is not None:
            self._segment = None
            segment.close_descriptor()


def _noted(segment: Segment) -> Any:
    """Return the memory of a private mapping for the user's arrays; a copy if there are many such mappings."""
    segment.close_descriptor()
    if len(_mapped) >= MOST_MAPPED:
        return np.frombuffer(segment, np.uint8).copy()
    _mapped.add(segment)
    return segment


def open_shared(data: bytes, rest: Content) -> SharedCall:
    """Return the call whose arrays another process of this machine has told of.

    Args:
        data: from ``SharedCall.encode``.
        rest: the call without the arrays.

    Raises:
        OSError: that process has ended, or does not permit it.
        ValueError: it is no segment.
    """
    process, descriptor, device, inode, count = SHARED.unpack_from(data)
    start = SHARED.size + 4 * count
    places = struct.unpack_from(f"<{count}I", data, SHARED.size)
    address = Address(process, descriptor, (device, inode))
    return SharedCall(rest, places, data[start:], open_segment(address.open(os.O_RDONLY), private=True))


def share(call: Content) -> SharedCall | None:
    """Copy the large arrays of a call into a segment; ``None`` if it has none, or they cannot be in one.

    Tensors that require grad travel in messages, which their gradients follow back. So do arrays that share memory: they
    arrive sharing it.
    """
    tensors = call.tensors
    if not any(map(_is_large, tensors)) or not all(map(_is_plain, tensors)):
        return None
    if len(tensors) > 1 and may_share([tensor._array for tensor in tensors]):
        return None
    large = {place: tensor._array for place, tensor in enumerate(tensors) if _is_large(tensor)}
    lengths = [array.nbytes for array in large.values()]
    rows = [encode_row(array.dtype, array.shape, False) for array in large.values()]
    tables = b"".join([*rows, *map(TABLE_LENGTH.pack, lengths)])
    try:
        segment = create_segment(sum(length + -length % TABLE_ALIGNMENT for length in lengths))
    except (OSError, MemoryError):
        return None
    for array, (start, _) in zip(large.values(), read_tables(tables, len(large), len(large), 0).spans):
        np.copyto(segment.array(array.dtype, array.shape, start), array)
    small = [tensor for place, tensor in enumerate(tensors) if place not in large]
    rest = Content(call.flags, call.pickled, small, call.references, call.buffers)
    return SharedCall(rest, list(large), tables, segment)


def _is_large(tensor: Any) -> bool:
    return bool(tensor._array.nbytes >= SHARED_BYTES and not tensor._requires_grad)


def _is_plain(tensor: Any) -> bool:
    array = tensor._array
    return isinstance(tensor, Tensor) and bool(array.flags.c_contiguous and array.dtype.isbuiltin == 1)


def shares_memory(agent: Agent, peer: Peer) -> bool:
    """Return whether a worker is on this machine, and the agent's lanes may use that."""
    return maps_memory(agent.options.lanes) and worker_host(peer) == worker_host(agent.peers.at(agent.number))


def worker_host(peer: Peer) -> str:
    """Return the host of a worker's first address; empty if that names none."""
    return first_host(peer.record.addresses)
