"""Bodies of messages: Python objects to a pickle and tables, and back.

Tensors and references are never in the pickle: in the place of each one, at any depth, the pickle has an index into the
message's tables. Memory of other objects leaves as out-of-band buffers of pickle protocol 5. Functions and classes go by
name. If they have no name that can be imported (lambdas, closures, classes of an interactive main), cloudpickle sends them by
value.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType
from typing import Any

import cloudpickle
import numpy as np

from ...base.errors import ArgumentKindError, SerializationError
from ...base.words import abridged
from ...core.extend import Tensor
from ...core.futures import Future, raised_by_handler
from .dtypes import dtype_name
from .function_names import MAIN, MAIN_NAMES, Unpickler
from .header import Flag
from .libraries.array_library import LibraryTensor, from_tables
from .libraries.dlpack import reduce_by_dlpack
from .libraries.registry import library_named, library_of, put_together
from .messages import NO_ATTACHMENTS, Attachments, Incoming, Outgoing
from .promises import Promise
from .python_versions import ADVICE, OtherVersionError
from .unpicklable import find_unpicklable

HERE = __name__
KEEP_IT = "leave it out (see __getstate__), or keep it where it lives and send an RRef to it"
NOWHERE: Mapping[str, str] = MappingProxyType({})  # no device is mapped
PARTS_SHOWN = 4  # of a message, in an error
NAMEABLE = (FunctionType, BuiltinFunctionType, type)

# Names the parts of a body, for the message of an error.
Labels = Callable[[Any], list[tuple[str, Any]]]


def no_labels(body: Any) -> list[tuple[str, Any]]:
    """Return no names: the parts of this body are not the user's."""
    return []


def tensor_at(index: int) -> Tensor:
    """Stand for a tensor in a pickle. The unpickler looks the tensor up in the message's table and does not call this."""
    raise SerializationError(f"tensor {index} of a message was unpickled outside that message")


def array_at(index: int) -> Any:
    """Stand for a NumPy array in a pickle, like ``tensor_at``: the table is faster than pickle's own way for arrays."""
    raise SerializationError(f"array {index} of a message was unpickled outside that message")


def reference_at(index: int) -> Any:
    """Stand for a reference in a pickle, like ``tensor_at``."""
    raise SerializationError(f"reference {index} of a message was unpickled outside that message")


def known_value(value: Any) -> Any:
    """Return a value that was promised, and is there: it is in the pickle in the place of the promise."""
    return value


def subclass_at(kind: type[Tensor], index: int) -> Any:
    """Stand for a tensor of a subclass, such as a parameter, in a pickle, like ``tensor_at``."""
    raise SerializationError(f"{kind.__name__} {index} of a message was unpickled outside that message")


def library_array_at(index: int, library: str, details: tuple[Any, ...], device: str = "") -> Any:
    """Stand for an array of another library in a pickle, like ``tensor_at``.

    Args:
        index: its place in the table of tensors.
        library: name of its library.
        details: see ``PackedArray``.
        device: device of the receiver; empty for its host memory.
    """
    raise SerializationError(f"{library} array {index} of a message was unpickled outside that message")


def set_attributes(obj: Any, attributes: dict[str, Any]) -> None:
    """Set the attributes that an array of another library had (pickle's way uses the library's ``__setstate__``)."""
    obj.__dict__.update(attributes)


class TooLargeError(Exception):
    """Error: a message exceeded the limit while it was pickled. Its argument is the size at that moment."""


class PickleOutput:
    """Collects the output of a pickler, and the objects that it replaces, up to ``limit`` bytes. One per attempt to pickle.

    Args:
        reference_types: types of the objects that the pickle replaces by an index, beside tensors.
        same_main: the receiver runs the same main script.
        limit: bytes of the largest message.
        versions: not empty if code cannot travel by value.
        to: number of the receiver.
        devices: device at the receiver, by the device here, of arrays of other libraries.
    """

    __slots__ = (
        "buffers", "devices", "limit", "pickled", "plain", "reference_types", "references", "same_main", "size", "tensors",
        "to", "versions",
    )  # fmt: skip

    def __init__(
        self,
        reference_types: tuple[type, ...],
        same_main: bool,
        limit: int,
        versions: str,
        to: int,
        devices: Mapping[str, str],
    ) -> None:
        self.reference_types = reference_types
        self.same_main = same_main
        self.limit = limit
        self.versions = versions
        self.to = to
        self.devices = devices
        self.size = 0
        self.pickled: list[Any] = []
        self.tensors: list[Tensor] = []
        self.references: list[Any] = []
        self.buffers: list[memoryview] = []
        self.plain = True

    def write(self, data: Any) -> int:
        """Take a piece of the pickle: this object is the pickler's file. A large ``bytes`` object comes without a copy."""
        size = len(data)
        self.pickled.append(data)
        self.size += size
        if self.size > self.limit:
            raise TooLargeError(self.size)
        return size

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > self.limit:
            raise TooLargeError(self.size)

    def replace(self, obj: Any) -> Any:
        """Return the reduction of a tensor or reference; ``NotImplemented`` for everything else.

        A sparse tensor is not replaced: pickle takes it apart, into an array and a tensor.
        """
        if isinstance(obj, Tensor) and not obj.is_sparse:
            self._add(obj)
            state = obj.__dict__ or None  # attributes travel with it, as in any pickle
            if type(obj) is Tensor:
                return tensor_at, (len(self.tensors) - 1,), state
            self.plain = False
            return subclass_at, (type(obj), len(self.tensors) - 1), state
        if type(obj) is np.ndarray and dtype_name(obj.dtype):
            # A broadcast array, such as a gradient may be, cannot be written element by element: it arrives as a full copy.
            self._count(obj.nbytes)
            self.tensors.append(Tensor(obj if 0 not in obj.strides else np.ascontiguousarray(obj)))
            return array_at, (len(self.tensors) - 1,)
        if isinstance(obj, self.reference_types):
            known: tuple[Any] | None = None
            if isinstance(obj, Promise):
                known = obj.known(self.to)
            elif isinstance(obj, Future):
                known = obj.known()
            if known is not None:
                return known_value, known
            self.references.append(obj)
            return reference_at, (len(self.references) - 1,)
        if not isinstance(obj, NAMEABLE) and (reduced := self._of_library(obj)) is not None:
            return reduced
        if self.plain and not _harmless(obj):
            self.plain = False
        return NotImplemented

    def _of_library(self, obj: Any) -> Any:
        """Return the reduction of an array of another library; ``None`` for everything else."""
        library = library_of(obj)
        if library is None:
            return reduce_by_dlpack(obj)
        if (parts := library.take_apart(obj)) is not None:
            self.plain = False
            attributes = getattr(obj, "__dict__", None) or None
            return put_together, (library.name, *parts), attributes, None, None, set_attributes
        if (packed := library.pack(obj)) is None:
            if (reduced := library.reduction(obj, self.same_main)) is None:
                return reduce_by_dlpack(obj)
            self.plain = False
            return reduced
        self._add(LibraryTensor(library, obj, packed))
        self.plain = False
        arguments: tuple[Any, ...] = len(self.tensors) - 1, library.name, packed.details
        if packed.device and (device := self.devices.get(packed.device)):
            arguments = (*arguments, device)
        if not (attributes := getattr(obj, "__dict__", None)):
            return library_array_at, arguments
        return library_array_at, arguments, attributes, None, None, set_attributes

    def _add(self, tensor: Tensor) -> None:
        self.tensors.append(tensor)
        self._count(tensor._array.nbytes)

    def keep(self, buffer: pickle.PickleBuffer) -> None:
        """Take an out-of-band buffer (pickle protocol 5)."""
        self.buffers.append(buffer.raw())
        self._count(self.buffers[-1].nbytes)


def _harmless(obj: Any) -> bool:
    """Return whether unpickling this kind of object runs no code but NumPy's and ours."""
    named = isinstance(obj, NAMEABLE)
    module = obj.__module__ if named else type(obj).__module__
    root = (module or "").partition(".")[0]
    return root == "numpy" or (named and (module == HERE or root == "builtins"))


class ByName(pickle.Pickler):
    """Fast pickler: functions and classes by name only."""

    def __init__(self, tables: PickleOutput) -> None:
        super().__init__(tables, 5, buffer_callback=tables.keep)
        self.tables = tables

    def reducer_override(self, obj: Any) -> Any:
        """Replace tensors and references; refuse names of a ``__main__`` that the receiver does not run."""
        if not self.tables.same_main and isinstance(obj, NAMEABLE) and obj.__module__ in MAIN_NAMES:
            raise pickle.PicklingError(f"{obj!r} is of a __main__ that the receiver does not run")
        return self.tables.replace(obj)


class ByValue(cloudpickle.Pickler):  # type: ignore[misc]  # it is untyped
    """Slow pickler: functions and classes whose names cannot be imported are sent by value."""

    def __init__(self, tables: PickleOutput) -> None:
        super().__init__(tables, 5, buffer_callback=tables.keep)
        self.tables = tables

    def reducer_override(self, obj: Any) -> Any:
        """Replace tensors and references, keep names that the receiver knows, and leave the rest to cloudpickle."""
        reduced = self.tables.replace(obj)
        if reduced is not NotImplemented:
            return reduced
        if isinstance(obj, NAMEABLE) and obj.__module__ in MAIN_NAMES and self.tables.same_main and _reachable(obj):
            return NotImplemented
        reduced = super().reducer_override(obj)
        if self.tables.versions and _is_code(obj, reduced):
            name = getattr(obj, "__qualname__", obj)
            raise OtherVersionError(f"{name!r} would travel by value, as bytecode, but {self.tables.versions}")
        return reduced


def _is_code(obj: Any, reduced: Any) -> bool:
    """Return whether an object travels as code, when cloudpickle has reduced it so."""
    if isinstance(obj, (FunctionType, type)):
        return reduced is not NotImplemented and obj.__module__ != "builtins"  # ``type(None)``, say, is an expression
    return isinstance(obj, CodeType)


def _reachable(obj: Any) -> bool:
    found: Any = sys.modules.get(MAIN)
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is obj


def pack_pickled(
    message: Outgoing,
    body: Any,
    reference_types: tuple[type, ...],
    same_main: bool,
    labels: Labels,
    limit: int,
    versions: str = "",
    devices: Mapping[str, str] = NOWHERE,
) -> None:
    """Put ``body`` into ``message``: its pickle, tensors, references, buffers and flags.

    Args:
        message: what to fill.
        body: what to send.
        reference_types: types that go into the table of references.
        same_main: the receiver runs the same main script.
        labels: names the parts of the body for an error message.
        limit: most bytes of pickle, tensors and buffers.
        versions: not empty if code cannot travel by value: both workers and their Python versions.
        devices: device at the receiver, by the device here, of arrays of other libraries; others go to its host memory.
    """

    def attempt(pickler: type[ByName] | type[ByValue], part: Any = body) -> PickleOutput:
        tables = PickleOutput(reference_types, same_main, limit, versions, message.to, devices)
        pickler(tables).dump(part)
        return tables

    try:
        try:
            tables = attempt(ByName)
        except Exception as error:
            if isinstance(error, TooLargeError) or raised_by_handler(error):
                raise
            tables = attempt(ByValue)
    except TooLargeError as error:
        raise SerializationError(
            f"a message of {error.args[0]:,} bytes or more ({_names(labels(body))}) cannot be sent: the limit is "
            f"{limit:,} bytes; send it in parts, or raise GrpcRpcBackendOptions(max_message_bytes=) on the sender"
        ) from None
    except Exception as error:
        if raised_by_handler(error):
            raise
        path = find_unpicklable(labels(body), lambda part: attempt(ByValue, part))
        error.__context__ = None  # the error of the attempt by name, which had the same reason
        raise SerializationError(f"{path} cannot be sent to another worker: {_reason(error)}") from error
    message.pickled = tables.pickled
    if tables.tensors or tables.references or tables.buffers:
        if (attached := message.attached) is NO_ATTACHMENTS:  # else it has notes
            message.attached = attached = Attachments()
        attached.tensors, attached.references, attached.buffers = tables.tensors, tables.references, tables.buffers
    if tables.plain:
        message.flags |= Flag.PLAIN


def _reason(error: Exception) -> str:
    if isinstance(error, OtherVersionError):
        return f"{error}; {ADVICE}"
    if isinstance(error, ArgumentKindError):  # an object of ours, which says how it travels
        return str(error)
    advice = "send its items with rpc.stream()" if "generator'" in str(error) else KEEP_IT
    return f"{type(error).__name__}: {error}; {advice}"


def _names(parts: list[tuple[str, Any]]) -> str:
    names = [name for name, _ in parts]
    return abridged(names, PARTS_SHOWN) or "its body"


class Opener(Unpickler):
    """Unpickles a body; table entries come from the message.

    The look-ups are methods of the tables, not of this object. Its memo keeps each look-up that it has used, and a method of
    this object in its own memo would be a reference cycle: every argument would live until the next garbage collection.
    """

    def __init__(self, message: Incoming) -> None:
        tables = message.attached
        super().__init__(io.BytesIO(message.pickled), buffers=tables.buffers)
        self.lookups = {
            "array_at": tables.arrays.__getitem__,
            "tensor_at": tables.tensors.__getitem__,
            "reference_at": tables.references.__getitem__,
            "known_value": known_value,
            "subclass_at": partial(_rebuild, tables.tensors),
            "library_array_at": partial(_of_library, tables.tensors),
            "set_attributes": set_attributes,
        }

    def find_class(self, module: str, name: str) -> Any:
        """Return the look-up of a table, or else the global of that name."""
        return self.lookups[name] if module == HERE else super().find_class(module, name)


def _rebuild(tensors: Sequence[Tensor], kind: type[Tensor], index: int) -> Tensor:
    tensor = tensors[index]
    if tensor.grad_fn is None:
        return tensor.as_subclass(kind)
    # A tensor that arrives in an autograd context is the result of an operation. Results keep their class only if the class
    # takes operations over: a parameter, for example, cannot be a result.
    if kind._takes_over:
        tensor.__class__ = kind
    return tensor


def _of_library(tensors: Sequence[Tensor], index: int, name: str, details: tuple[Any, ...], device: str = "") -> Any:
    library = library_named(name)
    made = from_tables(tensors[index], library, details)
    return library.to_device(made, device) if device else made
