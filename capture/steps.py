"""``Steps``: the operations of a recorded call, for export to formats that have operations of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.extend import Tensor
from .trees import tensors_of
from .values import mapped


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor of the call. An operation that changes one in place makes another ``Ref`` of it.

    Attributes:
        number: names it.
        shape, dtype: of the tensor.
    """

    number: int
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operation that ran.

    Attributes:
        function: the operation.
        args, kwargs: its arguments, with a ``Ref`` in the place of each tensor.
        outputs: its results.
        problem: why it cannot be exported, or ``None``.
    """

    function: Callable[..., Any]
    args: Any
    kwargs: Any
    outputs: tuple[Ref, ...]
    problem: str | None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return getattr(self.function, "__name__", str(self.function))


class Steps:
    """The operations so far.

    Attributes:
        steps: in order.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._refs: dict[int, Ref] = {}
        self._tensors: dict[int, Tensor] = {}  # those that have a Ref
        self._count = 0

    def ref(self, tensor: Tensor) -> Ref:
        """Return the present ``Ref`` of a tensor."""
        found = self._refs.get(id(tensor))
        return self._new(tensor) if found is None else found

    def _new(self, tensor: Tensor) -> Ref:
        self._count += 1
        self._tensors[id(tensor)] = tensor
        found = self._refs[id(tensor)] = Ref(self._count, tuple(tensor.shape), tensor._array.dtype)
        return found

    def add(self, operation: Any) -> None:
        """Add an operation that has run: an ``Operation``."""
        args, kwargs = self.tree((operation.args, operation.kwargs))
        results = tensors_of(operation.result)
        problem = "it draws random numbers" if operation.drew else None
        if any(self._shared(each) for each in operation.written) or len(operation.written) > 1:
            problem = "it changes memory that other tensors use"
        if any(each is not result for each in operation.written for result in results):
            problem = "it changes a tensor that it does not return"
        outputs = tuple([self._output(each, operation) for each in results])
        self.steps.append(Step(operation.function, args, kwargs, outputs, problem))

    def _output(self, result: Tensor, operation: Any) -> Ref:
        same = any(result is tensor for tensor in operation.tensors)
        changed = any(result is each for each in operation.written)
        return self.ref(result) if same and not changed else self._new(result)

    def _shared(self, tensor: Tensor) -> bool:
        array = tensor._array
        return any(other is not tensor and np.may_share_memory(other._array, array) for other in self._tensors.values())

    def tree(self, tree: Any) -> Any:
        """Return a structure with a ``Ref`` in the place of each tensor."""
        return mapped(tree, lambda each: self.ref(each) if isinstance(each, Tensor) else each)

    def close(self) -> None:
        """Let go of the tensors."""
        self._tensors.clear()
        self._refs.clear()
