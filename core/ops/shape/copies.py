"""Copies of views: ``permute_copy`` and its like return what the view of the same arguments shows, in memory of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ...tensors import Tensor
from ..elementwise.conversion import clone
from ..index.index_select import select
from ..table.operation import operation
from .diagonal import diagonal
from .repeating import expand
from .reshaping import squeeze, unsqueeze, view
from .splitting import narrow, split, split_with_sizes, unbind
from .strided import as_strided, unfold
from .transposing import permute, t, transpose

P = ParamSpec("P")
R = TypeVar("R", Tensor, tuple[Tensor, ...])


def _copying(view: Callable[P, R], method: bool = False) -> Callable[P, R]:
    """Return the operation that copies the result, or each of the results, of ``view``; ``method``: is it a method too."""

    @functools.wraps(view)
    def copy(*args: P.args, **kwargs: P.kwargs) -> R:
        result = view(*args, **kwargs)
        return tuple(map(clone, result)) if isinstance(result, tuple) else clone(result)

    name = view.__name__
    _, _, arguments = (view.__doc__ or "").partition("\n")
    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__module__ = __name__  # where others find it by name
    copy.__doc__ = f"Return a copy of what ``{name}`` with these arguments shows, in memory of its own.\n{arguments}"
    return operation(function=True, method=method)(copy)


@operation(function=True)
def alias_copy(input: Tensor) -> Tensor:
    """Return ``clone(input)``."""
    return clone(input)


as_strided_copy = _copying(as_strided)
diagonal_copy = _copying(diagonal)
expand_copy = _copying(expand)
narrow_copy = _copying(narrow, method=True)
permute_copy = _copying(permute)
select_copy = _copying(select)
split_copy = _copying(split)
split_with_sizes_copy = _copying(split_with_sizes)
squeeze_copy = _copying(squeeze)
t_copy = _copying(t)
transpose_copy = _copying(transpose)
unbind_copy = _copying(unbind)
unfold_copy = _copying(unfold)
unsqueeze_copy = _copying(unsqueeze)
view_copy = _copying(view)
