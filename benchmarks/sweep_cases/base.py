"""Operation of the sweep: forward, and backward if its result has a gradient, of one function on given tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..local_cases import Case, Step

AIM = 1.5  # times PyTorch's time

Make = Callable[[Any], Any]
"""Function from the library to a tensor."""
Operation = Callable[..., Any]
"""Function of the library and its tensors."""


def normal(*shape: int, grad: bool = True) -> Make:
    """Return a maker of a float32 tensor of normal numbers."""
    return lambda lib: lib.randn(*shape).requires_grad_(grad)


def between(low: float, high: float, *shape: int) -> Make:
    """Return a maker of a float32 tensor of numbers between ``low`` and ``high``."""
    return lambda lib: (lib.rand(*shape) * (high - low) + low).requires_grad_()


def indices(below: int, *shape: int) -> Make:
    """Return a maker of an int64 tensor of numbers from 0 to ``below`` - 1."""
    return lambda lib: lib.randint(0, below, shape)


def case(name: str, operation: Operation, *inputs: Make) -> Case:
    """Return the case of an operation."""
    return Case(name, lambda lib: step_of(lib, operation, [make(lib) for make in inputs]), AIM)


def cases(inputs: tuple[Make, ...], operations: Mapping[str, Operation]) -> Iterator[Case]:
    """Return a case for each operation, all with inputs of one kind."""
    for name, operation in operations.items():
        yield case(name, operation, *inputs)


def step_of(lib: Any, operation: Operation, tensors: list[Any]) -> Step:
    """Return a step: the operation, its backward with ones, and no gradient left."""
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    first = first_of(operation(lib, *tensors))
    if not first.requires_grad:
        return lambda: operation(lib, *tensors)
    seed = lib.ones_like(first)

    def step() -> None:
        first_of(operation(lib, *tensors)).backward(seed)
        for leaf in leaves:
            leaf.grad = None

    return step


def first_of(result: Any) -> Any:
    """Return a result's first tensor."""
    return result[0] if isinstance(result, (tuple, list)) else result


def by_name(names: str) -> dict[str, Operation]:
    """Return the functions of these names, which take nothing but tensors; a dot leads into a module of the library."""
    return {name: function_named(name) for name in names.split()}


def function_named(name: str) -> Operation:
    """Return a function that looks the name up in the library and calls it."""

    def call(lib: Any, *tensors: Any) -> Any:
        found = lib
        for part in name.split("."):
            found = getattr(found, part)
        return found(*tensors)

    return call
