"""Checks of copies, conversions and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core as tg
from ...core.sparse import sampled_addmm
from ...testing.ops import OpCheck, binary, unary


def _dropped(a: tg.Tensor) -> tg.Tensor:
    return tg.dropout(a, 0.4, generator=tg.Generator().manual_seed(0))


PATTERN = np.array([[1, 0, 1], [0, 1, 0]])


def _sampled(a: tg.Tensor, b: tg.Tensor, c: tg.Tensor) -> tg.Tensor:
    pattern = (a * tg.tensor(PATTERN)).to_sparse()
    return sampled_addmm(pattern, b, c, beta=0.5, alpha=2.0).to_dense()


def _sampled_product(a: Any, b: Any, c: Any) -> Any:
    return (0.5 * a + 2.0 * (b @ c)) * PATTERN


CHECKS = [
    OpCheck("clone", tg.clone, unary(), reference=np.copy),
    OpCheck("to", lambda a: a.to(tg.float64, copy=True), unary(), reference=np.copy, dtypes=("float64",)),
    OpCheck("type_as", lambda a, b: a.type_as(b), binary(), reference=lambda a, b: a),
    OpCheck(
        "sparse.sampled_addmm",
        _sampled,
        lambda make: [(make(2, 3), make(2, 4), make(4, 3))],
        reference=_sampled_product,
    ),
    OpCheck("to_sparse", lambda a: a.to_sparse().to_dense(), unary(), reference=np.copy),
    OpCheck(
        "copy_",
        lambda a, b: a.clone().copy_(b),
        lambda make: [(make(2, 3), make(3)), (make(), make()), (make(0), make(0))],
    ),
    OpCheck("dropout", _dropped, unary(), dtypes=("float16", "bfloat16", "float32", "float64")),
]
