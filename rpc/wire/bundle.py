"""``Bundle``: several bodies in one message, each packed before, which workers between pass on without opening them.

    pickled: HEAD | head | one row per content | pickles of the contents

The tensors, references and buffers of all contents are the message's, one content after another.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from ...base.errors import SerializationError
from ...core.extend import Tensor, gradient_edge
from .header import Flag
from .messages import NO_ATTACHMENTS, Attachments, Incoming, Outgoing
from .promises import Promise

HEAD = struct.Struct("<II")  # bytes of the head, number of contents
ROW = struct.Struct("<BIIIQ")  # flags; tensors, references, buffers; bytes of the pickle
LONGEST_JOINED = 4096  # bytes of contents that are copied into one piece
OF_NONE = Flag.BARE | Flag.PLAIN
BUNDLE_FLAGS = Flag.BUNDLE | Flag.PLAIN
KEPT = Flag.BARE | Flag.GUEST | Flag.PLAIN | Flag.ERROR  # flags of a message that belong to its body


class Content:
    """Body of a message, packed: a pickle and what goes beside it.

    Args:
        flags: those of ``KEPT``.
        pickled: the pickle in pieces.
        tensors, references, buffers: as in ``Attachments``.
    """

    __slots__ = ("buffers", "flags", "pickled", "references", "tensors")

    def __init__(
        self,
        flags: int,
        pickled: Sequence[Any],
        tensors: Sequence[Any] = (),
        references: Sequence[Any] = (),
        buffers: Sequence[Any] = (),
    ) -> None:
        self.flags = flags
        self.pickled = pickled
        self.tensors = tensors
        self.references = references
        self.buffers = buffers

    @classmethod
    def of(cls, message: Outgoing) -> Content:
        """Return the body of a message that was packed and is not sent."""
        beside = message.attached
        return cls(message.flags & KEPT, message.pickled, beside.tensors, beside.references, beside.buffers)

    @property
    def failed(self) -> bool:
        """Return whether it is an exception."""
        return bool(self.flags & Flag.ERROR)

    @property
    def is_none(self) -> bool:
        """Return whether it is ``None``."""
        return self.flags == OF_NONE and not self.tensors and not any(map(len, self.pickled))

    def size(self) -> int:
        """Return its bytes, without those of tables."""
        size = sum(map(len, self.pickled))
        if self.tensors or self.buffers:
            size += sum(tensor._array.nbytes for tensor in self.tensors)
            size += sum(memoryview(each).nbytes for each in self.buffers)
        return size

    def message(self) -> Incoming:
        """Return it as a message for ``Codec.open``, whose interceptors have seen it."""
        made = Incoming()
        made.flags, made.extras, made.pickled, made.attached = self.flags, {}, b"".join(self.pickled), NO_ATTACHMENTS
        if not (self.tensors or self.references or self.buffers):
            return made
        made.attached = attached = Attachments()
        attached.tensors, attached.buffers = self.tensors, self.buffers
        attached.references = [each.arrived() if isinstance(each, Promise) else each for each in self.references]
        attached.arrays = [tensor._array for tensor in self.tensors]
        return made

    def captured(self) -> Content:
        """Return a copy that does not share memory with the user's arrays. Gradients go where they went."""
        if not (self.tensors or self.buffers):
            return self
        buffers = [bytes(buffer) for buffer in self.buffers]
        pickled = [piece if type(piece) is bytes else bytes(piece) for piece in self.pickled]
        return Content(self.flags, pickled, list(map(_captured, self.tensors)), self.references, buffers)


class MappedContent(Content):
    """Content whose large arrays this worker has mapped: they came in no message, so that no budget has counted them."""

    __slots__ = ()

    def mapped(self) -> list[Any]:
        """Return the tensors among which they are; those that require grad travel in messages."""
        return [tensor for tensor in self.tensors if not tensor._requires_grad]


NONE = Content(OF_NONE, ())
ROW_OF_NONE = ROW.pack(OF_NONE, 0, 0, 0, 0)


def _captured(tensor: Any) -> Any:
    if not isinstance(tensor, Tensor):  # of another library, whose adapter has its memory
        return tensor
    edge = gradient_edge(tensor) if tensor._requires_grad else None
    return Tensor(tensor._array.copy(), tensor._requires_grad, edge)


class Bundle:
    """Several contents as the body of one message.

    Args:
        head: bytes for the receiver.
        contents: the contents.
        keep: the message has ``Flag.KEEP``.
        joined: the contents as bytes, from ``join``, if several messages have the same.
    """

    __slots__ = ("contents", "head", "joined", "keep")

    def __init__(self, head: bytes, contents: Sequence[Content], keep: bool = False, joined: bytes = b"") -> None:
        self.head = head
        self.contents = contents
        self.keep = keep
        self.joined = joined

    def put_into(self, message: Outgoing, limit: int) -> None:
        """Make it the body of a message.

        Raises:
            SerializationError: it has more than ``limit`` bytes.
        """
        message.flags |= BUNDLE_FLAGS | (Flag.KEEP if self.keep else 0)
        if self.joined:
            message.pickled = (HEAD.pack(len(self.head), len(self.contents)), self.head, self.joined)
            return
        contents = self.contents
        rows: list[bytes] = []
        pickles: list[Any] = []
        size = beside = 0
        for content in contents:
            if content is NONE:
                rows.append(ROW_OF_NONE)
                continue
            length = sum(map(len, content.pickled))
            counts = len(content.tensors), len(content.references), len(content.buffers)
            rows.append(ROW.pack(content.flags, *counts, length))
            pickles += content.pickled
            if any(counts):
                beside += sum(counts)
                length = content.size()
            size += length
        if size > limit:
            raise SerializationError(
                f"a message of {size:,} bytes cannot be sent: the limit is {limit:,} bytes; send it in parts, or raise "
                f"GrpcRpcBackendOptions(max_message_bytes=) on the sender"
            )
        message.pickled = [b"".join((HEAD.pack(len(self.head), len(rows)), self.head, *rows)), *pickles]
        if not beside:
            return
        tensors = [each for content in contents for each in content.tensors]
        references = [each for content in contents for each in content.references]
        buffers = [each for content in contents for each in content.buffers]
        if (attached := message.attached) is NO_ATTACHMENTS:
            message.attached = attached = Attachments()
        attached.tensors, attached.references, attached.buffers = tensors, references, buffers


def join(contents: Sequence[Content]) -> bytes:
    """Return the rows and pickles of contents as bytes; empty if they are long, or something travels beside them."""
    if any(content.tensors or content.references or content.buffers for content in contents):
        return b""
    lengths = [sum(map(len, content.pickled)) for content in contents]
    if sum(lengths) > LONGEST_JOINED:
        return b""
    rows = [ROW.pack(content.flags, 0, 0, 0, length) for content, length in zip(contents, lengths)]
    return b"".join([*rows, *(piece for content in contents for piece in content.pickled)])


def open_bundle(message: Incoming) -> Bundle:
    """Return the bundle that arrived as the body of a message, whose tensors are in place. Opens no content.

    Raises:
        SerializationError: its table does not fit its message.
    """
    view, beside = memoryview(message.pickled), message.attached
    length, count = HEAD.unpack_from(view)
    start = HEAD.size + length
    position = start + count * ROW.size
    if count == 1 and beside is NO_ATTACHMENTS:  # hot: a small call
        flags, *others = ROW.unpack_from(view, start)
        if others == [0, 0, 0, len(view) - position]:
            return Bundle(bytes(view[HEAD.size : start]), (Content(flags, (view[position:],)),))
    contents, tensor, reference, buffer = [], 0, 0, 0
    for flags, tensors, references, buffers, size in ROW.iter_unpack(view[start:position]):
        if not (tensors or references or buffers):
            none = flags == OF_NONE and not size
            contents.append(NONE if none else Content(flags, (view[position : position + size],)))
        else:
            contents.append(
                Content(
                    flags,
                    (view[position : position + size],),
                    beside.tensors[tensor : tensor + tensors],
                    beside.references[reference : reference + references],
                    beside.buffers[buffer : buffer + buffers],
                )
            )
            tensor, reference, buffer = tensor + tensors, reference + references, buffer + buffers
        position += size
    if position != len(view) or tensor != len(beside.tensors) or len(contents) != count:
        raise SerializationError(f"a bundle of {count} bodies does not fit its message of {len(view)} bytes")
    return Bundle(bytes(view[HEAD.size : start]), contents)
