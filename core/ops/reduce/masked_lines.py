"""``tg.masked`` in the shape of the input: softmax, norms and cumulative operations of the elements that a mask shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from ...tensors import Tensor
from ..elementwise import operators
from ..elementwise.conversion import to
from ..elementwise.exponential import logaddexp
from ..table.operation import operation
from . import cumulative, softmax
from .masked import HIGHEST, LOWEST, masked_norm, shown

_DOCUMENTATION = """Return ``{name}`` of the elements that ``mask`` shows; the others count as {hidden}.

    Args:
        input: any shape.
        dim: the dimension; negative ones count from the end.
        dtype: dtype to convert ``input`` to first; ``None`` for no conversion.
        mask: booleans, broadcast to the shape of ``input``: which elements take part; all if ``None``.

    Raises:
        IndexError: there is no such dimension.
        TypeError: the mask is not of booleans, or the dtype does not fit.
        ValueError: the mask cannot be broadcast to the shape of ``input``.
    """


def _along(name: str, compute: Callable[[Tensor, int], Tensor], value: Any, hidden: str) -> Callable[..., Tensor]:
    """Return the operation that computes along one dimension, with ``value`` for elements that take no part."""

    def along(input: Tensor, dim: int, *, dtype: npt.DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
        return compute(shown(input if dtype is None else to(input, dtype), mask, value), dim)

    along.__name__ = along.__qualname__ = f"masked_{name}"
    along.__doc__ = _DOCUMENTATION.format(name=name, hidden=hidden)
    return operation(function=f"masked.{name}")(along)


masked_cumsum = _along("cumsum", lambda x, dim: cumulative.cumsum(x, dim, dtype=x.dtype), 0, "0")
masked_cumprod = _along("cumprod", lambda x, dim: cumulative.cumprod(x, dim, dtype=x.dtype), 1, "1")
masked_softmax = _along("softmax", softmax.softmax, LOWEST, "-inf")
masked_log_softmax = _along("log_softmax", softmax.log_softmax, LOWEST, "-inf")
masked_softmin = _along("softmin", lambda x, dim: softmax.softmax(-x, dim), HIGHEST, "inf")


@operation(function="masked.normalize")
def masked_normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: npt.DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the elements that ``mask`` shows divided by their norm, and 0 elsewhere. Errors: those of ``masked.sum``.

    Args:
        input: any shape, floating-point or complex.
        ord: order of the norm.
        dim: the dimension; negative ones count from the end.
        eps: the smallest divisor.
        dtype: dtype of the norm; ``None`` for that of the input.
        mask: booleans, broadcast to the shape of ``input``: which elements take part; all if ``None``.
    """
    length = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return operators.div(shown(input, mask, 0), length.clamp(min=eps))


@operation(function="masked.logaddexp")
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: npt.DTypeLike | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return ``logaddexp`` of two tensors, where elements that a mask does not show count as -inf. Errors: ``masked.sum``'s.

    Args:
        input: any shape, floating-point.
        other: broadcast with ``input``.
        dtype: dtype to convert both to first; ``None`` for no conversion.
        input_mask: booleans, which elements of ``input`` take part; all if ``None``.
        other_mask: booleans, which elements of ``other`` take part; all if ``None``.
    """
    if dtype is not None:
        input, other = to(input, dtype), to(other, dtype)
    return logaddexp(shown(input, input_mask, LOWEST), shown(other, other_mask, LOWEST))
