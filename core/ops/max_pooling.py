"""Pooling of one to three dimensions by the largest element of each window."""

from __future__ import annotations

from typing import Any, Literal, overload

from ..operation import operation
from ..tensors import Tensor
from .shape.reshaping import squeeze
from .sliding import Ints
from .sliding_arguments import batched, pool_sliding
from .table.linear_map import LinearMap
from .table.nodes import record, records
from .windowing import peak_places, peaks, pick, pixel_numbers, place_back

__all__ = ["max_pool1d", "max_pool2d", "max_pool3d"]
METHODS = ()

_PICK = LinearMap("max_pool", pick, lambda g, shape, chosen, sliding: place_back(g, chosen, sliding))


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@operation
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool2d`` in one dimension: of (N, C, L) or (C, L)."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@operation
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        kernel_size: the window's size; one number, or one for each dimension, as for those that follow.
        stride: how far the window moves; as far as it is large, if ``None``.
        padding: how many elements on each side count as -inf; at most half the window.
        dilation: how far apart the elements are that the window sees.
        ceil_mode: whether a last window that reaches beyond the padding counts too.
        return_indices: return where the elements were in the flattened image (H * W) too.

    Returns:
        Shape (N, C, H', W'), where H' = (H + 2 * padding - dilation * (KH - 1) - 1) / stride + 1, rounded down or up.
        Of several largest elements, the first one gets the gradient.

    Raises:
        ValueError: the shapes do not fit, or the padding is more than half the window.
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    return_indices: Literal[False] = ...,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = ...,
    padding: Ints = ...,
    dilation: Ints = ...,
    ceil_mode: bool = ...,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@operation
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool2d`` in three dimensions: of (N, C, D, H, W) or (C, D, H, W)."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    x = batched(input, dims)
    sliding = pool_sliding(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    top = peaks(x._array, sliding)
    result = Tensor(top)
    chosen = peak_places(x._array, top, sliding) if return_indices or records(x) else None
    if records(x):
        record(_PICK.row, result, (x,), (), x.shape, chosen, sliding)
    result = result if x is input else squeeze(result, 0)
    if chosen is None or not return_indices:
        return result
    return result, Tensor(pixel_numbers(chosen, sliding).reshape(result.shape))
