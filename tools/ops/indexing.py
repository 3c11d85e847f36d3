"""Checks of indexing, gathering, scattering and masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import core as tg
from ...core import Tensor
from ...testing.ops import Make, OpCheck, Samples
from .shaping import of

SELECTIONS: dict[str, Any] = {
    "integer": 1,
    "slices": (slice(None), slice(1, None, 2)),
    "none and dots": (None, ..., -1),
    "list": [1, 0, 1],
    "array": np.array([[1, -1], [0, 0]]),
    "arrays": (slice(None), [0, 1, 1], [2, 0, 2]),
    "apart": ([1, 0], slice(None), [2, 0]),
    "integer and array": (0, slice(None), [1, 0, 1]),
    "mask": np.arange(24).reshape(2, 3, 4) % 3 == 0,
    "mask in front": (np.array([True, False]), slice(1, None)),
    "mask behind": (..., np.array([True, False, True, True])),
    "true": True,
    "nothing": [],
    "element": (1, 2, 3),
}


def selected(index: Any) -> Callable[[Tensor], Tensor]:
    """Return a function that reads at ``index``."""
    return lambda a: a[index]


def assigned(index: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that writes at ``index`` into a copy, and adds to the copy the sum of a view taken before."""

    def function(a: Tensor, value: Tensor) -> Tensor:
        copy = a * 1.0
        view = copy[0]
        copy[index] = value
        return copy + view.sum()

    return function


def assignments(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of a tensor and a number to write into it."""
    return [(make(2, 3, 4), make())]


def indices(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor and the indices to read in its last dimension."""
    return [
        (make(3), make.integers(5, high=3)),
        (make(2, 3), make.integers(2, 4, high=3)),
        (make(2, 3), make.integers(1, 2, high=3)),
        (make(2, 3), make.integers(0, 2, high=3)),
        (make(), Tensor(np.zeros((), np.int64))),
    ]


def indices_and_source(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor, different indices in its last dimension, and distinct values to write there."""
    cases = [
        ((4,), np.array([2, 0])),
        ((2, 4), np.array([[1, 3, 0], [2, 0, 3]])),
        ((2, 4), np.array([[1, 3]])),
        ((2, 0), np.zeros((2, 0), np.int64)),
    ]
    return [(make(*shape), Tensor(index), make(*index.shape)) for shape, index in cases]


def colliding(make: Make) -> list[tuple[Any, ...]]:
    """Return samples as ``indices_and_source`` does, with indices that occur more than once."""
    cases = [
        ((3,), np.array([2, 0, 2, 2])),
        ((2, 3), np.array([[1, 1, 0, 1], [2, 0, 0, 0]])),
        ((2, 2), np.array([[1, 1, 1]])),
    ]
    return [(make.distinct(*shape), Tensor(index), make.distinct(*index.shape) + 0.033) for shape, index in cases]


def rows(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor, indices of its rows, and rows to write there."""
    return [
        (make(3, 2), Tensor(np.array([2, 0])), make(2, 2)),
        (make(4), Tensor(np.array([3, 1])), make(2)),
        (make(2, 1, 2), Tensor(np.array([1])), make(1, 1, 2)),
        (make(2, 3), Tensor(np.zeros(0, np.int64)), make(0, 3)),
        (make(), Tensor(np.zeros(1, np.int64)), make()),
    ]


def masks(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor and a mask."""
    pairs = (((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 2), (0, 2)), ((1, 3), (2, 1)), ((2, 3), ()))
    return [(make(*shape), make.booleans(*mask)) for shape, mask in pairs]


def masks_and(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor, a mask and a number."""
    return [(*sample, make()) for sample in masks(make)]


def written(name: str, *before: Any, **options: Any) -> Callable[..., Tensor]:
    """Return a function of a sample that calls the tensor's method ``name``, with ``before`` as the first arguments."""
    return lambda a, *rest: getattr(a, name)(*before, *rest, **options)


def in_place(name: str, *before: Any, **options: Any) -> Callable[..., Tensor]:
    """Return a function of a sample that calls the in-place method ``name`` on a copy; arguments as in ``written``."""
    return lambda a, *rest: getattr(a * 1.0, name)(*before, *rest, **options)


def both(name: str, samples: Samples, *before: Any, **options: Any) -> list[OpCheck]:
    """Return the checks of a method and of its in-place form.

    Args:
        name: the name of the check.
        samples: the samples of both.
        *before: arguments before those of a sample.
        **options: keyword arguments.
    """
    base, _, variant = name.partition(":")
    suffix = f":{variant}" if variant else ""
    return [
        OpCheck(name, written(base, *before, **options), samples),
        OpCheck(f"{base}_{suffix}", in_place(f"{base}_", *before, **options), samples),
    ]


CHECKS = [
    *(OpCheck(f"getitem:{name}", selected(index), of((2, 3, 4))) for name, index in SELECTIONS.items()),
    OpCheck("getitem:0-d", lambda a: a[...] + a[None].sum() + a[True].sum(), of(())),
    OpCheck("getitem:empty", lambda a: a[:, [1, 0]], of((0, 2), (0, 2, 3))),
    # No index twice: which of the values remains there is not defined.
    *(
        OpCheck(f"setitem:{name}", assigned(index), assignments)
        for name, index in SELECTIONS.items()
        if name not in ("list", "array", "integer and array")
    ),
    OpCheck("setitem:integer and array", assigned((0, slice(None), [1, 0])), assignments),
    OpCheck(
        "setitem",
        assigned((slice(None), [0, 2])),
        lambda make: [(make(2, 3, 4), make(4)), (make(2, 3, 4), make(1, 2, 2, 4)), (make(2, 3, 0), make(1))],
    ),
    OpCheck("select", lambda a: tg.select(a, -1, 1), of((3,), (2, 3), (0, 2))),
    OpCheck(
        "take",
        tg.take,
        lambda make: [(make(2, 3), make.integers(2, 2, low=-6, high=6)), (make(), make.integers(2, high=1))],
    ),
    *both("index_put", lambda make: [(make(2, 3), make(2))], (Tensor(np.array([1, 0])), Tensor(np.array([2, 0])))),
    *both(
        "index_put:add",
        lambda make: [(make(2, 3), make(3, 3)), (make(2, 3), make())],
        (Tensor(np.array([1, 0, 1])),),
        accumulate=True,
    ),
    *both("put", lambda make: [(make(2, 3), Tensor(np.array([[5, 0]])), make(2))]),
    *both("put:add", lambda make: [(make(2, 3), Tensor(np.array([5, 5, -1])), make(3))], accumulate=True),
    OpCheck("gather", lambda a, index: tg.gather(a, -1, index), indices),
    OpCheck(
        "take_along_dim",
        lambda a, index: tg.take_along_dim(a, index, -1),
        lambda make: [(make(2, 3), make.integers(1, 4, low=-3, high=3)), (make(1, 3), make.integers(2, 2, high=3))],
    ),
    OpCheck("take_along_dim:flat", tg.take_along_dim, lambda make: [(make(2, 3), make.integers(2, 2, high=6))]),
    *both("scatter", indices_and_source, -1),
    OpCheck("scatter:value", lambda a, index: a.scatter(-1, index, 0.5), indices),
    *both("scatter:add", colliding, -1, reduce="add"),
    *both("scatter:multiply", colliding, -1, reduce="multiply"),
    *both("scatter_add", colliding, -1),
    *(
        each
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for alone in (True, False)
        for each in both(
            f"scatter_reduce:{reduce}{'' if alone else ' alone'}", colliding, -1, reduce=reduce, include_self=alone
        )
    ),
    OpCheck("index_select", lambda a, index, _: tg.index_select(a, 0, index), rows),
    *both("index_add", rows, 0, alpha=2.0),
    *both("index_copy", rows, 0),
    *both("index_fill", lambda make: [(a, index, make()) for a, index, _ in rows(make)], 0),
    OpCheck(
        "embedding",
        lambda weight, index: tg.embedding(weight, index),
        lambda make: [
            (make(4, 2), make.integers(2, 3, high=4)),
            (make(3, 1), make.integers(0, high=3)),
            (make(3, 2), make.integers(high=3)),
        ],
    ),
    OpCheck("where", lambda a, mask, b: tg.where(mask, a, b), masks_and),
    OpCheck("where:number", lambda a, mask: tg.where(mask, 2.0, a), masks),
    OpCheck("masked_fill", lambda a, mask, b: a.masked_fill(mask, b), masks_and),
    OpCheck("masked_fill_", lambda a, mask: (a * 1.0).masked_fill_(mask, 2.0), lambda make: masks(make)[:4]),
    OpCheck("masked_select", lambda a, mask: a.masked_select(mask), masks),
    *both("masked_scatter", lambda make: [(a, mask, make(3, 4)) for a, mask in masks(make)[:4]]),
    OpCheck(
        "nonzero",
        tg.nonzero,
        lambda make: [(make.booleans(2, 3),), (make.booleans(),), (make.booleans(0, 2),)],
        orders=0,
    ),
    OpCheck(
        "argwhere",
        tg.argwhere,
        lambda make: [(make.booleans(2, 3),), (make.booleans(0),)],
        orders=0,
        reference=np.argwhere,
    ),
    OpCheck(
        "diagonal",
        lambda a: tg.diagonal(a, 1),
        of((3, 4), (2, 2), (1, 1), (2, 3, 2)),
        reference=lambda a: np.diagonal(a, 1),
    ),
    OpCheck("diagonal:dims", lambda a: tg.diagonal(a, -1, -1, 0), of((3, 4), (2, 1, 3))),
    OpCheck("linalg_diagonal", tg.linalg.diagonal, of((3, 4), (2, 1, 3))),
    OpCheck(
        "diagonal_scatter",
        lambda a, b: tg.diagonal_scatter(a, b, 1),
        lambda make: [(make(3, 4), make(3)), (make(2, 2, 2), make(2, 1))],
    ),
    OpCheck("diag", lambda a: tg.diag(a, 1), of((3,), (0,), (3, 4), (2, 2), (1, 1)), reference=lambda a: np.diag(a, 1)),
    OpCheck("diag_embed", lambda a: tg.diag_embed(a, -1, 0, -1), of((3,), (2, 3), (0,))),
    OpCheck("diagflat", tg.diagflat, of((), (2, 2), (3,)), reference=np.diagflat),
    OpCheck("trace", tg.trace, of((2, 3), (3, 3), (0, 0), (4, 1)), reference=np.trace),
    OpCheck("tril", lambda a: tg.tril(a, 1), of((3, 4), (2, 3, 3), (0, 2)), reference=lambda a: np.tril(a, 1)),
    OpCheck("triu", tg.triu, of((3, 4), (2, 3, 3), (0, 2)), reference=np.triu),
    OpCheck("tril_", lambda a: (a * 1.0).tril_(), of((3, 4))),
    OpCheck("triu_", lambda a: (a * 1.0).triu_(), of((3, 4))),
]
