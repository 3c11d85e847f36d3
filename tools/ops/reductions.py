"""Checks of reductions: sums, extremes, deviations, norms, cumulative sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core as tg
from ...testing.ops import Make, OpCheck, unary

SIGNED = unary(signs=True)


def _lines(*shapes: tuple[int, ...], dims: tuple[Any, ...] = (0, -1), **options: Any) -> Any:
    def samples(make: Make) -> list[tuple[Any, ...]]:
        return [(make(*shape, **options), dim) for shape in shapes for dim in dims]

    return samples


def distinct(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor without equal elements and a dimension."""
    return [(make.distinct(*shape), dim) for shape in ((4,), (2, 3), (3, 1, 4)) for dim in (0, -1)] + [(make(), 0)]


def filled(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor without equal elements."""
    return [(make.distinct(*shape),) for shape in ((), (5,), (2, 3), (1, 5, 1))]


def with_zeros(make: Make) -> list[tuple[Any, ...]]:
    """Return samples of a tensor with no, one or more zeros in each line, and a dimension."""
    samples = []
    for shape, zeros in (((4,), [1]), ((2, 3), [0, 4]), ((2, 3), [0, 2, 4]), ((3, 2, 2), [1, 5, 9])):
        values = make(*shape, requires_grad=False).numpy()
        values.reshape(-1)[zeros] = 0.0
        samples += [(tg.tensor(values, requires_grad=True), dim) for dim in (0, -1)]
    return samples


LINES = _lines((3,), (2, 3), (2, 0), (1, 5, 1), signs=True)
FULL_LINES = _lines((3,), (2, 3), (4, 1, 2), signs=True)
ROWS = _lines((3, 5), dims=(0,), signs=True)
INEXACT = ("float16", "float32", "float64")


def _values(function: Any) -> Any:
    return lambda a, dim: function(a, dim)[0]


EXEMPT = {"hash_tensor": "integers; tests/core/test_native_functions.py"}
CHECKS = [
    OpCheck("sum", tg.sum, SIGNED, reference=np.sum),
    OpCheck("sum:dim", tg.sum, LINES, reference=np.sum),
    OpCheck("sum:dims", lambda a, dim: tg.sum(a, (dim, 1), True), _lines((2, 3, 2), dims=(0, 2))),
    OpCheck("nansum", tg.nansum, LINES, reference=np.nansum),
    OpCheck("mean", tg.mean, FULL_LINES, reference=np.mean),
    OpCheck("nanmean", tg.nanmean, FULL_LINES, reference=np.nanmean),
    OpCheck("prod", tg.prod, SIGNED, reference=np.prod),
    OpCheck("prod:dim", tg.prod, LINES, reference=np.prod),
    OpCheck("prod:zeros", tg.prod, with_zeros, reference=np.prod, dtypes=INEXACT),
    OpCheck("prod:zeros of all", lambda a, dim: tg.prod(a), with_zeros, dtypes=INEXACT),
    OpCheck("all", tg.all, LINES, orders=0, reference=np.all),
    OpCheck("any", tg.any, LINES, orders=0, reference=np.any),
    OpCheck("count_nonzero", tg.count_nonzero, LINES, orders=0, reference=np.count_nonzero),
    OpCheck("amax", tg.amax, distinct, reference=lambda a, dim: np.max(a, dim if a.ndim else None)),
    OpCheck("amin", tg.amin, distinct, reference=lambda a, dim: np.min(a, dim if a.ndim else None)),
    OpCheck("aminmax", lambda a, dim: tuple(tg.aminmax(a, dim=dim)), distinct),
    OpCheck("max", tg.max, filled, reference=np.max),
    OpCheck("max:dim", _values(tg.max), distinct),
    OpCheck("min", tg.min, filled, reference=np.min),
    OpCheck("min:dim", _values(tg.min), distinct),
    OpCheck("argmax", tg.argmax, distinct, orders=0),
    OpCheck("argmin", tg.argmin, distinct, orders=0),
    OpCheck("var", tg.var, FULL_LINES, dtypes=INEXACT),
    OpCheck("var:all", lambda a: tg.var(a, correction=0), filled, reference=np.var, dtypes=INEXACT),
    OpCheck("std", tg.std, _lines((3,), (3, 4), signs=True), dtypes=INEXACT),
    OpCheck("var_mean", tg.var_mean, _lines((3,), (3, 4), signs=True), dtypes=INEXACT),
    OpCheck("std_mean", tg.std_mean, _lines((3,), (3, 4), signs=True), dtypes=INEXACT),
    OpCheck("cov", lambda a, dim: tg.cov(a), ROWS, reference=lambda a, dim: np.cov(a), dtypes=INEXACT),
    OpCheck("corrcoef", lambda a, dim: tg.corrcoef(a), ROWS, reference=lambda a, dim: np.corrcoef(a), dtypes=INEXACT),
    *(OpCheck(f"norm:{p}", lambda a, dim, p=p: tg.norm(a, p, dim), FULL_LINES) for p in (1, 2, 3, 1.5, -1)),
    OpCheck("norm", tg.norm, SIGNED, reference=lambda a: np.sqrt(np.sum(a * a))),
    OpCheck("norm:0", lambda a, dim: tg.norm(a, 0, dim), FULL_LINES, orders=0),
    OpCheck("norm:inf", lambda a, dim: tg.norm(a, np.inf, dim), FULL_LINES),
    OpCheck("norm:-inf", lambda a, dim: tg.norm(a, -np.inf, dim), FULL_LINES),
    OpCheck("dist", lambda a, dim: tg.dist(a, a * a, 3), FULL_LINES),
    OpCheck("logsumexp", tg.logsumexp, FULL_LINES, reference=lambda a, dim: np.log(np.sum(np.exp(a), dim))),
    OpCheck("softmax", tg.softmax, LINES),
    OpCheck("log_softmax", tg.log_softmax, LINES),
    OpCheck("cumsum", tg.cumsum, LINES, reference=np.cumsum),
    OpCheck("cumprod", tg.cumprod, LINES, reference=np.cumprod),
    OpCheck("cumprod:zeros", tg.cumprod, with_zeros, reference=np.cumprod, dtypes=INEXACT),
    OpCheck("cummax", _values(tg.cummax), distinct),
    OpCheck("cummin", _values(tg.cummin), distinct),
    OpCheck(
        "logcumsumexp",
        tg.logcumsumexp,
        LINES,
        reference=lambda a, dim: np.log(np.cumsum(np.exp(a), dim)),
        dtypes=INEXACT,
    ),
    OpCheck("diff", lambda a, dim: tg.diff(a, dim=dim), LINES, reference=lambda a, dim: np.diff(a, axis=dim)),
    OpCheck(
        "diff:twice", lambda a, dim: tg.diff(a, 2, dim), FULL_LINES, reference=lambda a, dim: np.diff(a, 2, axis=dim)
    ),
]
