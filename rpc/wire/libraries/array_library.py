"""``ArrayLibrary``: base of the adapters of array libraries, and what an adapter and a message exchange."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.extend import Array, Edge, Tensor


class PackedArray(NamedTuple):
    """Array of another library, ready to travel.

    Attributes:
        array: its elements, over the same memory where possible. A type that NumPy does not have travels as integers.
        details: what ``ArrayLibrary.unpack`` needs beside the elements: strings, numbers, classes.
        requires_grad: its flag, in a library with gradients.
        device: name of the device that it was copied from, as in ``device_maps``: ``"cuda:0"``; empty for host memory.
    """

    array: Array
    details: tuple[Any, ...] = ()
    requires_grad: bool = False
    device: str = ""


class MissingDeviceError(RuntimeError):
    """Error: an array arrived for a device that is not here. Its message says which, and what there is."""


class ArrayLibrary:
    """Adapter of an array library. The arrays of the library, at any depth of a message, travel outside of its pickle.

    Attributes:
        name: root of the library's module names, the same on all workers.
        install: what to install where the library is missing.
        shares: arrays that are views of one memory arrive as views of one memory. Otherwise each arrives in its own.
        usual: class of the library's usual arrays, and the details that ``pack`` gives of most; ``None`` if there is no such
            class. A call whose arguments are such arrays needs no pickle.
    """

    name: str = ""
    install: str = ""
    shares: bool = False
    usual: tuple[type, tuple[Any, ...]] | None = None

    def pack(self, value: Any) -> PackedArray | None:
        """Return an object of the library as what travels; ``None`` if it is no array, and pickle is to send it.

        What the object has in its ``__dict__`` travels as well, and is set at the receiver.

        Raises:
            TypeError: it is an array of a kind that cannot travel. The message says which, and what to send instead.
        """
        raise NotImplementedError(f"{type(self).__name__} must define pack(value)")

    def unpack(self, array: Array, details: tuple[Any, ...], requires_grad: bool) -> Any:
        """Return the library's array of a ``PackedArray`` that arrived.

        Args:
            array: its elements. Nothing else uses their memory, unless the library ``shares``.
            details: those that ``pack`` gave.
            requires_grad: its flag. False in an autograd context whose sender recorded nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} must define unpack(array, details, requires_grad)")

    def reduction(self, value: Any, same_main: bool) -> tuple[Any, ...] | None:
        """Return how pickle is to make an object that is no array, as ``__reduce__`` does; ``None`` for pickle's own way.

        Args:
            value: an object of the library for which ``pack`` returned ``None``.
            same_main: the receiver runs the same main script.
        """
        return None

    def take_apart(self, value: Any) -> tuple[Any, ...] | None:
        """Return the parts of an array that is made of other arrays, which travel in its place; ``None`` for others.

        Args:
            value: an object of the library.
        """
        return None

    def put_together(self, *parts: Any) -> Any:
        """Return the array of the parts that ``take_apart`` gave.

        Args:
            parts: the same objects, as they arrived.
        """
        raise NotImplementedError(f"{type(self).__name__} must define put_together(*parts)")

    def connect(self, array: Array, details: tuple[Any, ...], edge: Edge) -> Any:
        """Return the library's array of one that arrived in an autograd context, as the output of a node.

        Args:
            array, details: as for ``unpack``.
            edge: node and slot to which its gradient goes.
        """
        return self.unpack(array, details, False)

    def to_device(self, value: Any, device: str) -> Any:
        """Return an array that arrived, moved to the device that the sender's ``device_maps`` name.

        Args:
            value: what ``unpack`` or ``connect`` returned. The result has the same flag, and its gradient goes the same way.
            device: name of the device, such as ``"cuda:0"``.

        Raises:
            MissingDeviceError: there is no such device.
        """
        raise MissingDeviceError(
            f"device_maps place it on {device!r}, but the adapter for arrays of {self.name} there knows no devices"
        )

    def edge(self, value: Any) -> Edge | None:
        """Return node and slot of our graph for the gradient of an array, if the library has no graph of its own.

        Args:
            value: an array of the library.

        Returns:
            ``None`` for an array that requires no grad.
        """
        return None

    def is_neutral(self) -> bool:
        """Return whether this thread makes and packs arrays as any other: its user has set no mode for it that changes them."""
        return True

    def is_at_hand(self, value: Any) -> bool:
        """Return whether a usual array can be packed without waiting for a device or a computation."""
        return False

    def memory(self, value: Any) -> Array:
        """Return the elements of an array, to be read and written in place.

        Args:
            value: an object of the library.

        Raises:
            TypeError: it is no array, or its elements cannot be written in place. The message says why.
        """
        raise TypeError(
            f"arrays of {self.name} cannot be changed in place; give an array of NumPy or a tensor, and convert the result"
        )

    def changed(self, value: Any) -> None:
        """Note that elements were written to ``memory(value)``."""


class LibraryTensor(Tensor):
    """Tensor over the memory of another library's array, for which it stands in the tables of a message that is sent.

    Args:
        library: adapter of the library.
        original: the library's array.
        packed: its elements and flag.

    Attributes:
        alone: it arrives in memory of its own. A library with gradients sees only that *this* tensor is changed, if two share
            their memory, so one that requires grad is alone.
    """

    __slots__ = ("alone", "library", "original")

    def __init__(self, library: ArrayLibrary, original: Any, packed: PackedArray) -> None:
        super().__init__(packed.array, packed.requires_grad)
        self.library = library
        self.original = original
        self.alone = packed.requires_grad or not library.shares


def from_tables(tensor: Tensor, library: ArrayLibrary, details: tuple[Any, ...]) -> Any:
    """Return the library's array of one that arrived in the tables of a message.

    Args:
        tensor: its elements and flag; in an autograd context with a node.
        library: adapter of the library.
        details: those that ``pack`` gave.
    """
    if tensor._edge is None:
        return library.unpack(tensor._array, details, tensor._requires_grad)
    return library.connect(tensor._array, details, tensor._edge)
