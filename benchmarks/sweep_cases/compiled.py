"""Operations that were slower than PyTorch's, on small tensors, and compiled: beside PyTorch's eager ones."""

from __future__ import annotations

from typing import Any

from ..local_cases import Case, Step
from .base import AIM, Make, Operation, case, indices, normal, step_of
from .layers import grid_sample

Sizes = tuple[tuple[Make, ...], tuple[Make, ...]]


def _images(*weight: int) -> Sizes:
    return (
        (normal(2, 8, 8, 8), normal(*[min(each, 8) for each in weight])),
        (normal(8, 32, 16, 16), normal(*weight)),
    )


def _matrix(*others: tuple[Make, Make]) -> Sizes:
    small, usual = zip(*others) if others else ((), ())
    return (normal(16, 16), *small), (normal(256, 256), *usual)


OPERATIONS: dict[str, tuple[Operation, Sizes]] = {
    "grid_sample": (
        grid_sample,
        ((normal(2, 3, 8, 8), normal(2, 8, 8, 2)), (normal(4, 16, 64, 64), normal(4, 64, 64, 2))),
    ),
    "hardswish": (lambda lib, x: lib.nn.functional.hardswish(x), _matrix()),
    "conv2d, stride 2": (lambda lib, x, w: lib.nn.functional.conv2d(x, w, stride=2), _images(32, 32, 3, 3)),
    "conv2d, depthwise": (
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, groups=w.shape[0]),
        _images(32, 1, 3, 3),
    ),
    "group_norm": (
        lambda lib, x: lib.nn.functional.group_norm(x, 4),
        ((normal(2, 8, 8, 8),), (normal(8, 32, 16, 16),)),
    ),
    "gather": (lambda lib, x, at: lib.gather(x, 1, at), _matrix((indices(16, 16, 4), indices(256, 256, 64)))),
    "embedding": (
        lambda lib, x, at: lib.nn.functional.embedding(at, x),
        ((normal(20, 8), indices(20, 4, 5)), (normal(1000, 64), indices(1000, 32, 20))),
    ),
    "cumsum": (lambda lib, x: x.cumsum(1), _matrix()),
    "fft2": (lambda lib, x: lib.fft.fft2(x).abs(), ((normal(16, 16),), (normal(128, 128),))),
}


def compiled_case(name: str, operation: Operation, *inputs: Make) -> Case:
    """Return the case of an operation whose step, forward and backward, is compiled if the library is Telegrad.

    Args:
        name: of the case.
        operation: the operation.
        inputs: makers of its tensors.
    """

    def build(lib: Any) -> Step:
        step = step_of(lib, operation, [make(lib) for make in inputs])
        compiled: Step = lib.compile(step) if lib.__name__ == "telegrad" else step
        return compiled

    return Case(name, build, AIM)


CASES = tuple(
    each
    for name, (operation, (small, usual)) in OPERATIONS.items()
    for each in (
        case(f"small: {name}", operation, *small),
        compiled_case(f"compiled, small: {name}", operation, *small),
        compiled_case(f"compiled: {name}", operation, *usual),
    )
)
