"""Checks of joining and splitting tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import core as tg
from ...core import Tensor
from ...testing.ops import Make, OpCheck
from .shaping import of


def pairs(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of two tensors whose shapes differ only in the first dimension."""
    return [(make(*a), make(*b)) for a, b in (((2, 3), (1, 3)), ((3,), (2,)), ((0, 2), (2, 2)), ((1, 2, 1), (2, 2, 1)))]


def alike(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of two tensors of one shape."""
    return [(make(*shape), make(*shape)) for shape in ((), (3,), (2, 3), (2, 0), (1, 2, 1))]


def joined(function: Any, **options: Any) -> Callable[..., Any]:
    """Return ``function`` as a function of tensors instead of a list of them."""
    return lambda *tensors: function(list(tensors), **options)


CHECKS = [
    *(
        OpCheck(name, joined(getattr(tg, name)), pairs, reference=joined(np.concatenate))
        for name in ("cat", "concat", "concatenate")
    ),
    OpCheck("cat:dim", joined(tg.cat, dim=-1), lambda make: [(make(2, 1), make(2, 3)), (make(1), make(0), make(2))]),
    OpCheck("stack", joined(tg.stack), alike, reference=joined(np.stack)),
    OpCheck("stack:dim", joined(tg.stack, dim=-1), alike, reference=joined(np.stack, axis=-1)),
    OpCheck("hstack", joined(tg.hstack), alike, reference=joined(np.hstack)),
    OpCheck("vstack", joined(tg.vstack), alike, reference=joined(np.vstack)),
    OpCheck("row_stack", joined(tg.row_stack), alike, reference=joined(np.vstack)),
    OpCheck("dstack", joined(tg.dstack), alike, reference=joined(np.dstack)),
    OpCheck("column_stack", joined(tg.column_stack), alike),
    OpCheck(
        "block_diag",
        tg.block_diag,
        lambda make: [(make(2, 3), make(2), make()), (make(1, 1),), (make(0, 2), make(2, 1))],
    ),
    OpCheck("split", lambda a: tg.split(a, 2), of((5,), (4, 2), (1,), (0, 2))),
    OpCheck("split:sizes", lambda a: tg.split(a, [1, 0, 2], -1), of((3,), (2, 3), (0, 3))),
    OpCheck("split_with_sizes", lambda a: a.split_with_sizes([1, 2]), of((3,), (3, 2))),
    OpCheck("split:one used", lambda a: tg.split(a, 2)[1], of((5,), (4, 2))),
    OpCheck("chunk", lambda a: tg.chunk(a, 3), of((5,), (4, 2), (2,), (0, 2))),
    OpCheck(
        "tensor_split",
        lambda a: tg.tensor_split(a, 3),
        of((5,), (4, 2), (2,), (0, 2)),
        reference=lambda a: tuple(np.array_split(a, 3)),
    ),
    OpCheck("tensor_split:at", lambda a: tg.tensor_split(a, (1, 3, 2, 9), -1), of((5,), (2, 4))),
    OpCheck(
        "hsplit", lambda a: tg.hsplit(a, 2), of((4,), (3, 2), (2, 4, 1)), reference=lambda a: tuple(np.hsplit(a, 2))
    ),
    OpCheck("vsplit", lambda a: tg.vsplit(a, 2), of((2, 3), (4, 1, 2)), reference=lambda a: tuple(np.vsplit(a, 2))),
    OpCheck("dsplit", lambda a: tg.dsplit(a, 2), of((1, 2, 4)), reference=lambda a: tuple(np.dsplit(a, 2))),
    OpCheck("unbind", tg.unbind, of((3,), (2, 3), (2, 0), (1, 2, 1)), reference=tuple),
    OpCheck("unbind:dim", lambda a: tg.unbind(a, -1), of((2, 3), (2, 1, 2))),
    OpCheck("unbind:one used", lambda a: tg.unbind(a, -1)[0], of((2, 3), (2, 1, 2))),
    OpCheck("narrow", lambda a: tg.narrow(a, -1, 1, 2), of((3,), (2, 4), (0, 3))),
]
