"""Checks of sorting, of choosing by order, and of counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core as tg
from ...testing.ops import Make, OpCheck
from .reductions import INEXACT, distinct, filled

REAL = ("bool", "uint8", "int64", "float16", "float32", "float64")


def whole(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a vector of small integers."""
    return [(make.integers(n, high=4),) for n in (0, 1, 7, 20)]


def sequences(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of sorted sequences and values to search for."""
    shapes = [((4,), (2, 3)), ((5,), ()), ((2, 4), (2, 3)), ((3,), (0,))]
    return [
        (tg.sort(make(*lines, requires_grad=False)).values, make(*wanted, requires_grad=False))
        for lines, wanted in shapes
    ]


def ordinary(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of real numbers of several shapes."""
    return [(make(*shape, requires_grad=False),) for shape in ((), (5,), (3, 4), (0,))]


CHECKS = [
    OpCheck("sort", lambda a, dim: tuple(tg.sort(a, dim)), distinct, dtypes=REAL),
    OpCheck("sort:descending", lambda a, dim: tuple(tg.sort(a, dim, True)), distinct, dtypes=REAL),
    OpCheck("argsort", tg.argsort, distinct, orders=0, dtypes=REAL),
    OpCheck("msort", lambda a, dim: tg.msort(a), distinct, dtypes=REAL),
    OpCheck("topk", lambda a, dim: tuple(tg.topk(a, 1, dim)), distinct, dtypes=REAL),
    OpCheck("kthvalue", lambda a, dim: tuple(tg.kthvalue(a, 1, dim)), distinct, dtypes=REAL),
    OpCheck("median", tg.median, filled, dtypes=REAL),
    OpCheck("median:dim", lambda a, dim: tuple(tg.median(a, dim)), distinct, dtypes=REAL),
    OpCheck("nanmedian", tg.nanmedian, filled, dtypes=REAL),
    OpCheck("mode", lambda a, dim: tuple(tg.mode(a, dim)), distinct, dtypes=REAL),
    OpCheck("quantile", lambda a, dim: tg.quantile(a, 0.3, dim), distinct, dtypes=INEXACT),
    OpCheck(
        "quantile:all", lambda a: tg.quantile(a, 0.3), filled, reference=lambda a: np.quantile(a, 0.3), dtypes=INEXACT
    ),
    OpCheck("nanquantile", lambda a, dim: tg.nanquantile(a, 0.3, dim), distinct, dtypes=INEXACT),
    OpCheck("unique", tg.unique, whole, orders=0, reference=np.unique),
    OpCheck("unique_consecutive", tg.unique_consecutive, whole, orders=0),
    OpCheck("bincount", tg.bincount, whole, orders=0, reference=np.bincount),
    OpCheck("histc", lambda a: tg.histc(a, 5, 0.3, 1.7), ordinary, orders=0, dtypes=INEXACT),
    OpCheck("searchsorted", tg.searchsorted, sequences, orders=0, dtypes=("float64",)),
    OpCheck("bucketize", lambda lines, a: tg.bucketize(a, lines), sequences, orders=0, dtypes=("float64",)),
    OpCheck("isin", lambda a: tg.isin(a, tg.tensor([1, 2])), whole, orders=0, reference=lambda a: np.isin(a, [1, 2])),
]
