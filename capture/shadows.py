"""``Shadows``: tensors over stand-ins, each in the place of a tensor of the recorded call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.extend import Tensor
from .errors import Unrecordable
from .names import Followed, Names
from .tracer import Tracer
from .values import Outer, Statement, Value, Wrapped


class Shadows:
    """Tensors over stand-ins of one program.

    Args:
        names: the tensors of the call.

    Attributes:
        tracer: has the statements of the program.
    """

    def __init__(self, names: Names) -> None:
        self.tracer = Tracer(self._outer)
        self._names = names
        self._shadows: dict[int, Tensor] = {}  # by the ids of tensors
        self._leaves: dict[int, Tensor] = {}  # by the ids of shadows, tensors from outside

    def of(self, tensor: Tensor) -> Tensor:
        """Return the tensor over a stand-in that is in the place of ``tensor``."""
        shadow = self._shadows.get(id(tensor))
        if shadow is None:  # from outside
            shadow = self.over(self.tracer.outside(tensor._array), tensor)
            self.tracer.given.add(_value_of(shadow).number)
            self._shadows[id(tensor)], self._leaves[id(shadow)] = shadow, tensor
        return shadow

    def of_any(self, each: Any) -> Any:
        """Return what is in the place of a tensor; anything else is returned as it is."""
        return self.of(each) if isinstance(each, Tensor) else each

    def find(self, tensor: Tensor) -> Tensor | None:
        """Return what is in the place of ``tensor``; ``None`` if nothing is yet."""
        return self._shadows.get(id(tensor))

    def put(self, tensor: Tensor, shadow: Tensor) -> None:
        """Let a tensor over a stand-in be in the place of ``tensor``."""
        self._shadows[id(tensor)] = shadow

    def keep(self, tensor: Tensor, shadow: Tensor) -> Tensor:
        """Let a shadow be in the place of ``tensor``, unless another one is; return the one that is."""
        return self._shadows.setdefault(id(tensor), shadow)

    @staticmethod
    def over(stand_in: Any, tensor: Tensor) -> Tensor:
        """Return a tensor over a stand-in that is changed where a tensor from outside is."""
        shadow = Tensor(stand_in, tensor._requires_grad)
        shadow._counter = Followed(tensor._counter)
        return shadow

    def value(self, tensor: Tensor) -> Value:
        """Return the value of a tensor's array."""
        return _value_of(self.of(tensor))

    # -- tensors from outside

    def real(self, shadow: Tensor) -> Tensor:
        """Return the tensor from outside that a shadow is in the place of."""
        return self._leaves[id(shadow)]

    def leaf(self, shadow: Tensor) -> Tensor:
        """Return the tensor from outside that a backward pass has reached.

        Raises:
            Unrecordable: it belongs to a graph from outside.
        """
        real = self._leaves.get(id(shadow))
        if real is None or real._edge is not None:
            raise Unrecordable("backward() goes on into a graph that was made before the call")
        return real

    def _outer(self, shadow: Tensor) -> Outer:
        """Return the tensor from outside that a statement changes, by its shadow."""
        real = self._leaves.get(id(shadow))
        if real is None or real._requires_grad:
            raise Unrecordable("it changes a tensor that is a result, or that requires grad")
        self.tracer.changed.append(real._array)
        outer: Outer = self.argument(real)
        return outer

    def outside(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the tensors over stand-ins that are in the places of tensors from outside, and these."""
        for shadow in list(self._shadows.values()):
            if (real := self._leaves.get(id(shadow))) is not None:
                yield shadow, real

    # -- the arguments of statements

    def argument(self, each: Any) -> Any:
        """Return what stands for a tensor in the arguments of a statement; anything else is returned as it is."""
        if not isinstance(each, Tensor):
            return each
        if id(each) in self._names.outside:
            return Outer(self._names.place(each), self._names.name(each)[0] == "found")
        return Wrapped(self.value(each), each._requires_grad)

    def arrays(self) -> dict[int, Outer]:
        """Return the tensors from outside whose arrays the program uses, by the number of the value."""
        return {self.value(each).number: self.argument(each) for each in self._leaves.values()}

    def read(self, statements: Sequence[Statement]) -> list[Outer]:
        """Return the tensors from outside whose elements statements need."""
        used = {storage for statement in statements for storage in statement.storages()}
        return [self.argument(each) for each in self._leaves.values() if self.value(each).storages & used]


def _value_of(shadow: Tensor) -> Value:
    stand_in: Any = shadow._array
    value: Value = stand_in._value
    return value
