"""Checks of copies of views: the values of the view, in memory of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import core as tg
from ...core import Tensor
from ...testing.ops import OpCheck
from .shaping import of

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "alias_copy": (),
    "diagonal_copy": (1,),
    "expand_copy": (2, 3, 4),
    "narrow_copy": (1, 1, 2),
    "permute_copy": (1, 0),
    "select_copy": (0, 1),
    "split_copy": (2,),
    "split_with_sizes_copy": ([1, 3], 1),
    "squeeze_copy": (0,),
    "t_copy": (),
    "transpose_copy": (0, 1),
    "unbind_copy": (1,),
    "unfold_copy": (1, 2, 1),
    "unsqueeze_copy": (1,),
}


def _apart(name: str, *arguments: Any) -> Any:
    def call(a: Tensor) -> Any:
        results = getattr(tg, name)(a, *arguments)
        for result in results if isinstance(results, tuple) else (results,):
            if np.shares_memory(result._array, a._array):
                raise AssertionError(f"{name}() shares the memory of its argument")
        return results

    return call


def _check(name: str, *arguments: Any) -> OpCheck:
    return OpCheck(name, _apart(name, *arguments), of((3, 4)))


CHECKS = [
    *(_check(name, *arguments) for name, arguments in ARGUMENTS.items()),
    OpCheck("view_copy", lambda a: tg.view_copy(a.contiguous(), (2, 6)), of((3, 4))),
    OpCheck("as_strided_copy", lambda a: tg.as_strided_copy(a.contiguous(), (2, 2), (1, 2), 1), of((6,), (2, 3))),
    OpCheck(
        "as_strided_scatter",
        lambda a, src: tg.as_strided_scatter(a.contiguous(), src, (2, 2), (1, 3), 1),
        lambda make: [(make(2, 3), make(2, 2))],
    ),
]
EXEMPT = {
    "nonzero_static": "nonzero of a given length; tests/core/test_shapes.py",
    "resize_": "it changes memory without a gradient; tests/core/test_shapes.py",
    "resize_as_": "as resize_",
    "set_": "it changes memory without a gradient; tests/core/test_shapes.py",
}
