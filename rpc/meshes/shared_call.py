"""``SharedCall``: a call whose large arrays are in a segment, which the workers of one machine map in the place of copies.

Each worker opens the descriptor of the worker that sent it the call, and tells its children of its own. So whoever has the
call has the arrays, whatever becomes of other workers. A worker that cannot open it, in another container say, gets the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ...core.extend import Tensor
from ...core.shared_memory import Address, SealedFile, map_sealed, open_sealed, write_sealed
from ..options import maps_memory
from ..wire.bundle import Content, MappedContent
from ..wire.layout import may_share, raw_bytes
from ..wire.tables import TABLE_ALIGNMENT, TABLE_LENGTH, encode_row, read_tables

if TYPE_CHECKING:
    from ..agent import Agent

SHARED_BYTES = 64 * 1024  # smaller arrays travel in the message
MOST_MAPPED = 64  # segments that live arrays map: each takes a descriptor; arrays of others are copied
SHARED = struct.Struct("<IiQQI")  # process and descriptor, device and inode; number of arrays

_mapped: set[ref[Any]] = set()


class SharedCall:
    """Call whose large arrays are in a segment.

    Args:
        rest: the call without them.
        places: of the arrays among the tensors of the call, ascending.
        tables: their rows and lengths, as in a frame that has only them.
        file: has their bytes; ``None`` if the call is over.
    """

    def __init__(self, rest: Content, places: Sequence[int], tables: bytes, file: SealedFile | None) -> None:
        self.rest = rest
        self._places = places
        self._tables = tables
        self._file = file

    def captured(self) -> SharedCall:
        """Return a copy that does not share memory with the user's arrays."""
        return SharedCall(self.rest.captured(), self._places, self._tables, self._file)

    def content(self) -> Content:
        """Return the whole call. Its arrays are its own: no other process sees what is written to them.

        Raises:
            OSError: the call is over, or no descriptor is left.
        """
        return _with_arrays(self.rest, self._places, self._tables, self._open_file().map())

    def _open_file(self) -> SealedFile:
        if (file := self._file) is None:
            raise FileNotFoundError("the call is over")
        return file

    def encode(self) -> bytes:
        """Return where another process of this machine finds the arrays, and what they are.

        Raises:
            OSError: the call is over.
        """
        process, descriptor, identity = self._open_file().address()
        first = SHARED.pack(process, descriptor, *identity, len(self._places))
        return b"".join((first, struct.pack(f"<{len(self._places)}I", *self._places), self._tables))

    def close(self) -> None:
        """Forget the segment: no other worker gets it any more. The arrays of its contents stay."""
        if (file := self._file) is not None:
            self._file = None
            file.close()


def _told(data: bytes) -> tuple[Sequence[int], bytes, Address]:
    """Return places, tables and the address of the segment, from ``SharedCall.encode``."""
    process, descriptor, device, inode, count = SHARED.unpack_from(data)
    places = struct.unpack_from(f"<{count}I", data, SHARED.size)
    return places, data[SHARED.size + 4 * count :], Address(process, descriptor, (device, inode))


def open_shared(data: bytes, rest: Content) -> SharedCall:
    """Return the call whose arrays another process of this machine has told of.

    Args:
        data: from ``SharedCall.encode``.
        rest: the call without the arrays.

    Raises:
        OSError: that process has ended, or does not permit it.
        ValueError: it is no segment.
    """
    places, tables, address = _told(data)
    return SharedCall(rest, places, tables, open_sealed(address))


def whole_call(data: bytes, rest: Content) -> Content:
    """Return the content of such a call, for a worker that tells no other of it.

    Args:
        data, rest: as for ``open_shared``.

    Raises:
        OSError, ValueError: as for ``open_shared``.
    """
    places, tables, address = _told(data)
    return _with_arrays(rest, places, tables, map_sealed(address))


def _with_arrays(rest: Content, places: Sequence[int], tables: bytes, memory: Any) -> Content:
    """Return the whole call, with its arrays in the memory; in a copy of it if there are many such mappings."""
    if len(_mapped) >= MOST_MAPPED:
        memory = np.frombuffer(memory, np.uint8).copy()
    else:
        _mapped.add(ref(memory, _mapped.discard))
    count = len(places)
    rows, spans, _ = read_tables(tables, count, count, 0)
    tensors = list(rest.tensors)
    for place, row, (start, _) in zip(places, rows, spans):
        array: Any = np.ndarray(row.shape, row.dtype, memory, start)
        tensors.insert(place, Tensor(array))
    return MappedContent(rest.flags, rest.pickled, tensors, rest.references, rest.buffers)


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
    spans = read_tables(tables, len(large), len(large), 0).spans
    size = sum(length + -length % TABLE_ALIGNMENT for length in lengths)
    try:
        file = write_sealed(size, ((start, raw_bytes(array)) for array, (start, _) in zip(large.values(), spans)))
    except (OSError, MemoryError):
        return None
    small = [tensor for place, tensor in enumerate(tensors) if place not in large]
    rest = Content(call.flags, call.pickled, small, call.references, call.buffers)
    return SharedCall(rest, list(large), tables, file)


def _is_large(tensor: Any) -> bool:
    return bool(tensor._array.nbytes >= SHARED_BYTES and not tensor._requires_grad)


def _is_plain(tensor: Any) -> bool:
    array = tensor._array
    return isinstance(tensor, Tensor) and bool(array.flags.c_contiguous and array.dtype.isbuiltin == 1)


def mapping_host(agent: Agent) -> str | None:
    """Return the host whose workers may map the agent's memory: its own; ``None`` if its lanes may not use that."""
    return agent.peers.at(agent.number).host if maps_memory(agent.options.lanes) else None
