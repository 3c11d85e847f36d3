"""Checks of ``masked``: against NumPy's masked arrays, and with elements that would spoil a gradient behind the mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import core as tg
from ...core import masked
from ...testing.ops import Make, OpCheck

INEXACT = ("float16", "float32", "float64")


def _samples(make: Make) -> list[tuple[Any, ...]]:
    result = []
    for shape in ((4,), (3, 5), (2, 3, 2)):
        mask = np.arange(np.prod(shape)).reshape(shape) % 4 != 1
        values = make.distinct(*shape).detach().numpy() + 1.15
        result.append((tg.tensor(values, requires_grad=True), tg.tensor(mask)))
    return result


def _check(name: str, reference: Callable[..., Any] | None = None, *arguments: Any, **options: Any) -> OpCheck:
    function = getattr(masked, name)

    def call(a: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
        # Behind the mask: an infinity, whose gradient is 0 and not nan.
        return function(tg.where(mask, a, math.inf), *arguments, mask=mask, **options)

    wanted = None if reference is None else lambda a, mask: np.asarray(reference(np.ma.array(a, mask=~mask)))
    orders = 0 if name.startswith("arg") else 2
    return OpCheck(f"masked_{name}", call, _samples, orders, INEXACT, wanted)


def _added(a: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
    return masked.logaddexp(a, a * 2, input_mask=mask, other_mask=tg.ones_like(mask))


def _medians(a: Any) -> Any:
    lines = a.reshape(-1, a.shape[-1])
    middle = [np.sort(line.compressed())[(line.count() - 1) // 2] for line in lines]
    return np.array(middle).reshape(a.shape[:-1])


CHECKS = [
    _check("sum", np.ma.sum),
    _check("prod", np.ma.prod),
    _check("amax", np.ma.max),
    _check("amin", np.ma.min),
    _check("argmax", np.ma.argmax),
    _check("argmin", np.ma.argmin),
    _check("mean", np.ma.mean),
    _check("median", _medians, -1),
    _check("logsumexp", lambda a: np.log(np.exp(a).sum())),
    _check("norm", lambda a: np.sqrt((a**2).sum()), 2.0),
    _check("var", lambda a: a.var(ddof=1)),
    _check("std", lambda a: a.std(), unbiased=False),
    _check("cumsum", lambda a: a.filled(0).cumsum(-1), -1),
    _check("cumprod", lambda a: a.filled(1).cumprod(-1), -1),
    _check("softmax", lambda a: (np.exp(a) / np.exp(a).sum(0)).filled(0), 0),
    OpCheck(
        "masked_log_softmax",
        lambda a, mask: tg.where(mask, masked.log_softmax(a, 0, mask=mask), 0.0),
        _samples,
        2,
        INEXACT,
    ),
    _check("softmin", lambda a: (np.exp(-a) / np.exp(-a).sum(0)).filled(0), 0),
    _check("normalize", lambda a: (a / np.sqrt((a**2).sum(-1, keepdims=True))).filled(0), 2.0, -1),
    OpCheck("masked_logaddexp", _added, _samples, 1, INEXACT),
]
