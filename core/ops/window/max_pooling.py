"""Pooling of one to three dimensions by the largest element of each window, and its partial inverse, unpooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, cast, overload

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..shape.reshaping import reshape
from ..table.array_functions import chosen as masked
from ..table.linear_map import LinearMap
from ..table.nodes import record, records
from ..table.rows import Row
from ..table.watched import watched
from .arguments import batched, in_dims, per_dim, pool_window, unbatched
from .window import Ints, Window, cropped, overlap_add, padded, reduce_window

CACHE = 1 << 17  # bytes of a gradient that are put back at once


class MaxPool(Protocol):
    """Signature of ``max_pool1d``, ``max_pool2d`` and ``max_pool3d``, whose result depends on ``return_indices``."""

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = ...,
        padding: Ints = ...,
        dilation: Ints = ...,
        ceil_mode: bool = ...,
        return_indices: Literal[False] = ...,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = ...,
        padding: Ints = ...,
        dilation: Ints = ...,
        ceil_mode: bool = ...,
        *,
        return_indices: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window.

    If elements are equal, the first one gets the gradient.

    Args:
        input: shape (N, C, {image}) or (C, {image}), of any real dtype.
        kernel_size: size of the window; one number, or one for each dimension.
        stride: step from one stop of the window to the next; one number, or one for each dimension; ``kernel_size`` if
            ``None``.
        padding: number of elements of -inf on each side, at most half the window; one number, or one for each dimension.
        dilation: step from one element of the window to the next; one number, or one for each dimension.
        ceil_mode: whether to add a last stop that begins within the image and reaches beyond the padding.
        return_indices: whether to return the indices of the elements in the flattened image as well, int64.

    Returns:
        Shape (N, C, {stops}) or (C, {stops}), where each length is
        ``(length + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down, or up in ``ceil_mode``.
        With ``return_indices``, a tuple of two such tensors.

    Raises:
        ValueError: the shapes do not fit, there are no channels, or the padding is more than half the window.
    """
    x = batched(input, dims)
    if not x.shape[1]:
        raise ValueError(f"the input must have channels, and has shape {input.shape}")
    window = pool_window(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    image = padded(x._array, window, _lowest(x._array))
    top, chosen = _largest(image, window, return_indices or records(x))
    result = Tensor(top)
    if records(x):
        record(_PICK.row, result, (x,), (), x.shape, chosen, window)
    result = unbatched(result, input)
    if chosen is None or not return_indices:
        return result
    return result, Tensor(_pixels(chosen, window).reshape(result.shape))


max_pool1d = cast(MaxPool, in_dims(1, _max_pool))
max_pool2d = cast(MaxPool, in_dims(2, _max_pool))
max_pool3d = cast(MaxPool, in_dims(3, _max_pool))


def _lowest(x: Array) -> Any:
    """Return the smallest number of the array's dtype, for padding that is never the largest element."""
    if x.dtype.kind == "b":
        return False
    return np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf


def _largest(image: Array, window: Window, choose: bool) -> tuple[Array, Array | None]:
    """Return the largest element of each window of a padded image, and which it is, if ``choose``: see ``_first_equal``."""
    inside = window._replace(input_size=image.shape[2:], padding=(0,) * len(window.padding))
    top: Any = None
    chosen: Any = None
    parts = _parts(image, 4 * CACHE)
    for part in parts:  # one that stays in the cache
        largest = reduce_window(np.maximum, image[part], inside)
        first = _first_equal(image[part], largest, window) if choose else None
        if len(parts) == 1:
            return largest, first
        if top is None:
            top = np.empty((len(image), *largest.shape[1:]), largest.dtype, like=image)
            chosen = None if first is None else np.empty(top.shape, first.dtype, like=image)
        top[part] = largest
        if first is not None:
            chosen[part] = first
    return top, chosen


def _first_equal(image: Array, top: Array, window: Window) -> Array:
    """Return the number within its window, from 0, of the first element of a padded image that equals ``top``.

    It counts the elements before that one in a few fast passes; writing numbers through masks takes ten times as long.
    """
    count = math.prod(window.kernel_size)
    result = np.zeros(top.shape, np.int8 if count < 128 else np.int32, like=top)
    before = np.ones(top.shape, np.bool_, like=top)
    for _, index in zip(range(count - 1), window.slices()):  # the last one need not be compared
        before &= image[index] != top
        result += before.view(np.int8)
    return result


def _pick(x: Array, chosen: Array, window: Window) -> Array:
    """Return the element of each window whose number is in ``chosen``, shape (N, C, *output_size)."""
    image = padded(x, window)
    result = np.zeros(chosen.shape, x.dtype, like=x)
    for number, index in enumerate(window.slices()):
        np.copyto(result, image[index], where=chosen == number)
    return result


def _put_back(g: Array, shape: tuple[int, ...], chosen: Array, window: Window) -> Array:
    """Return zeros with each element of ``g`` added where ``_pick`` took it."""
    if any(k > s or d > 1 for k, s, d in zip(window.kernel_size, window.stride, window.dilation)):
        return overlap_add((masked(chosen == n, g) for n in itertools.count()), shape, g.dtype, window)
    # No pixel is in two windows, so there is nothing to add up.
    size = window.padded_size()
    covered = all(
        k == s and n * s == whole for k, s, n, whole in zip(window.kernel_size, window.stride, window.output_size, size)
    )
    result = (np.empty if covered else np.zeros)((*shape[:2], *size), g.dtype, like=g)
    for part in _parts(g):  # one that stays in the cache
        for number, index in enumerate(window.slices()):
            masked(chosen[part] == number, g[part], out=result[part][index])
    return cropped(result, window)


def _parts(x: Array, size: int = CACHE) -> list[slice]:
    step = max(1, size // max(x[:1].nbytes, 1))
    return [slice(start, start + step) for start in range(0, max(len(x), 1), step)]


_PICK = LinearMap("max_pool", _pick, _put_back)


def _pixels(chosen: Array, window: Window) -> Array:
    """Return the indices of the chosen elements in the flattened image, as int64."""
    within = np.unravel_index(chosen, window.kernel_size)
    stops = np.ogrid[tuple(map(slice, window.output_size))]
    result = np.zeros(chosen.shape, np.int64)
    for stop, offset, length, _, _, stride, dilation, padding in zip(stops, within, *window):
        # If all elements of a window are -inf, padding may be chosen: the nearest pixel is taken instead.
        pixel = np.clip(stop * stride - padding + offset * dilation, 0, max(length - 1, 0))
        result = result * length + pixel
    return result


# Not a LinearMap: of elements with the same index the last one is written, but all get its gradient, as in PyTorch.
_UNPOOL = Row("max_unpool", lambda xp, g, where, shape: xp.reshape(xp.get(g, where), shape))


def _max_unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the elements written to the indices that ``max_pool{dims}d(return_indices=True)`` returned.

    Args:
        input: shape (N, C, {image}) or (C, {image}), of any dtype.
        indices: integers of the same shape: indices in the flattened result.
        kernel_size, stride, padding: arguments of ``max_pool{dims}d``.
        output_size: the result's shape or last dimensions, because images of more than one size are pooled to the same.

    Returns:
        Shape (N, C, {stops}) or (C, {stops}), where each length is ``(length - 1) * stride - 2 * padding + kernel_size``,
        unless ``output_size`` is given.

    Raises:
        TypeError: the indices are not integers.
        ValueError: the shapes differ, or an index is not within the image.
    """
    if indices.shape != input.shape:
        raise ValueError(f"the indices must have the input's shape {input.shape}, not {indices.shape}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"the indices must be integers, not {indices.dtype}")
    x = batched(input, dims)
    lengths = _unpooled_size(x.shape[2:], kernel_size, stride, padding, output_size)
    size, planes = math.prod(lengths), x.shape[0] * x.shape[1]
    flat = indices._array.reshape(planes, -1 if indices.numel() else 0)
    if flat.size and not (flat.min() >= 0 and flat.max() < size):
        raise ValueError(f"the indices must be from 0 to {size - 1}, within an image of {lengths}")
    where = (np.arange(planes)[:, None], flat)
    out = np.zeros((planes, size), x.dtype)
    out[where] = x._array.reshape(flat.shape)
    result = Tensor(out)
    if records(x):
        watched(record(_UNPOOL, result, (x,), (), where, x.shape), indices)
    return reshape(result, (*input.shape[:-dims], *lengths))


max_unpool1d = in_dims(1, _max_unpool)
max_unpool2d = in_dims(2, _max_unpool)
max_unpool3d = in_dims(3, _max_unpool)


def _unpooled_size(
    pooled: tuple[int, ...], kernel_size: Ints, stride: Ints | None, padding: Ints, output_size: Sequence[int] | None
) -> tuple[int, ...]:
    dims = len(pooled)
    kernel, spaces = per_dim("kernel_size", kernel_size, dims), per_dim("padding", padding, dims)
    steps = kernel if stride is None else per_dim("stride", stride, dims)
    usual = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(pooled, steps, spaces, kernel))
    if output_size is None:
        return usual
    given = tuple(output_size)[-dims:]
    if len(given) != dims or any(not u - s < n < u + s for u, s, n in zip(usual, steps, given)):
        raise ValueError(
            f"output_size {tuple(output_size)} is not one that is pooled to {pooled}; the usual is {usual}"
        )
    return given
