"""``Names``: the names of a recording's tensors, and which of them exist outside of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.extend import Tensor
from .errors import DISTURBED, Unrecordable


class Names:
    """The tensors of one recorded call.

    A tensor is an argument of the call (``("given", place)``), a result of an operation (``("result", operation, place)``), or
    the call has found it in some other place (``("found", id)``): then it exists outside, or something made it that is not
    recorded. In the second case, the next recording finds another one.

    Args:
        given: tensors among the arguments.

    Attributes:
        found: tensors that are neither arguments nor results, in order.
        outside: arguments and found tensors, by their ids.
    """

    def __init__(self, given: Iterable[Tensor]) -> None:
        self.found: list[Tensor] = []
        self.outside: dict[int, Tensor] = {}
        self._counters: list[tuple[Tensor, Any]] = []
        self._versions: dict[int, int] = {}  # by the ids of version counters, what these should be
        self._names: dict[int, Any] = {}
        self._closed: set[int] = set()
        self._given = {id(tensor): place for place, tensor in enumerate(given)}

    def name(self, tensor: Tensor) -> Any:
        """Return the name of a tensor; one that has none was found outside.

        Raises:
            Unrecordable: it is of a kind that is not recorded.
        """
        name = self._names.get(id(tensor))
        if name is None:
            check_kind(tensor)
            place = self._given.get(id(tensor))
            if place is None:
                self.found.append(tensor)
            name = self._names[id(tensor)] = ("found", id(tensor)) if place is None else ("given", place)
            self.outside[id(tensor)] = tensor
            self._counters.append((tensor, tensor._counter))
            self._versions.setdefault(id(tensor._counter), tensor._counter[0])
        return name

    def knows(self, tensor: Tensor) -> bool:
        """Return whether a tensor has a name."""
        return id(tensor) in self._names

    def seen(self, tensor: Tensor) -> None:
        """Note that a tensor may have been changed in place by a recorded call, other than an operation."""
        self._versions[id(tensor._counter)] = tensor._counter[0]

    def made(self, operation: int, tensors: Iterable[Tensor]) -> None:
        """Name the results of an operation, unless they have names.

        Args:
            operation: its number.
            tensors: its results.
        """
        for place, tensor in enumerate(tensors):
            self._names.setdefault(id(tensor), ("result", operation, place))

    def place(self, tensor: Tensor) -> int:
        """Return the number of a tensor from outside among the arguments or among those that were found."""
        kind, place = self._names[id(tensor)]
        return next(i for i, each in enumerate(self.found) if each is tensor) if kind == "found" else int(place)

    def changed(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Note that recorded code may have changed these tensors in place, and return those that it has changed."""
        found = [each for each in tensors if self._versions.get(id(each._counter), 0) != each._counter[0]]
        for tensor in found:
            self._versions[id(tensor._counter)] = tensor._counter[0]
        return found

    def close(self, tensors: Iterable[Tensor]) -> None:
        """Note that recorded code has replaced the memory of tensors, which the call must not use again."""
        for tensor in tensors:
            self._closed.add(id(tensor))
            self._counters = [each for each in self._counters if each[0] is not tensor]

    def check_open(self, tensors: Iterable[Tensor]) -> None:
        """Raise if the memory of a tensor was replaced.

        Raises:
            Unrecordable: it was.
        """
        if self._closed and any(id(tensor) in self._closed for tensor in tensors):
            raise Unrecordable("a parameter is used after the step that replaced its memory")

    def check(self) -> None:
        """Raise if a tensor from outside was changed otherwise.

        Raises:
            Unrecordable: it was.
        """
        for tensor, counter in self._counters:
            if tensor._counter is not counter or counter[0] != self._versions[id(counter)]:
                raise Unrecordable(DISTURBED)


class Followed(list[int]):
    """Version counter of a tensor over a stand-in: that of the tensor from outside, whose changes have counted already.

    So a backward pass over stand-ins needs no value that the call has changed, as one over the tensors themselves.

    Args:
        counter: of the tensor from outside.
    """

    def __init__(self, counter: list[int]) -> None:
        super().__init__(counter)
        self._counter = counter

    def __getitem__(self, place: Any) -> Any:
        return self._counter[place]

    def __setitem__(self, place: Any, version: Any) -> None:
        pass


def check_kind(tensor: Tensor) -> None:
    """Raise unless tensors of this kind are recorded.

    Raises:
        Unrecordable: it is sparse, has hooks, or a class with operations of its own.
    """
    if type(tensor)._takes_over or tensor.is_sparse:
        raise Unrecordable(f"tensors of the class {type(tensor).__name__} are not recorded")
    if tensor._hooks is not None:
        raise Unrecordable("a hook is registered on a tensor")
