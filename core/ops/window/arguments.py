"""Checks of the arguments of operations with windows, and ``in_dims``: one function for one, two and three dimensions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ...tensors import Tensor
from ..shape.reshaping import squeeze, unsqueeze
from ..table.operation import operation
from .window import Ints, Window

P = ParamSpec("P")
R = TypeVar("R")

_SIZES = {1: ("L", "K", "L'"), 2: ("H, W", "KH, KW", "H', W'"), 3: ("D, H, W", "KD, KH, KW", "D', H', W'")}


def in_dims(dims: int, function: Callable[Concatenate[int, P], R]) -> Callable[P, R]:
    """Return ``function``, whose first argument is the number of spatial dimensions, as the operation of ``dims``.

    The operation of ``_conv`` is ``conv2d``, for two dimensions. The docstring of ``function`` is a format: ``{image}``,
    ``{kernel}`` and ``{stops}`` stand for the lengths of the image, the window and the result, ``{dims}`` for the number.
    """
    signature = inspect.signature(partial(function, dims))

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(dims, *args, **kwargs)
        except TypeError:
            # A call with wrong arguments raises here, with a message about the public signature.
            signature.bind(*args, **kwargs)
            raise

    image, kernel, stops = _SIZES[dims]
    call.__doc__ = (function.__doc__ or "").format(dims=dims, image=image, kernel=kernel, stops=stops)
    call.__name__ = call.__qualname__ = f"{function.__name__.strip('_')}{dims}d"
    call.__module__ = function.__module__
    vars(call).update(__signature__=signature)
    return operation(function=True)(call)


def batched(input: Tensor, dims: int) -> Tensor:
    """Return ``input`` with a batch dimension in front, added if it has none.

    Raises:
        ValueError: ``input`` has neither ``dims + 1`` nor ``dims + 2`` dimensions.
    """
    if input.ndim not in (dims + 1, dims + 2):
        image = _SIZES[dims][0]
        raise ValueError(f"the input must have shape (N, C, {image}) or (C, {image}), not {input.shape}")
    return input if input.ndim == dims + 2 else unsqueeze(input, 0)


def unbatched(result: Tensor, input: Tensor) -> Tensor:
    """Return ``result``, without its batch dimension if ``input`` has none."""
    return result if result.ndim == input.ndim else squeeze(result, 0)


def window_over(
    input_size: tuple[int, ...],
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    *,
    behind: tuple[int, ...] | None = None,
    ceil_mode: bool = False,
) -> Window:
    """Return the window that slides over an image with padding before it and behind it.

    Args:
        input_size: the lengths of the image.
        kernel_size, stride, padding, dilation: one number, or one for each dimension.
        behind: the padding behind the image; ``padding`` if ``None``.
        ceil_mode: whether to add a last stop that begins within the image and reaches beyond the padding.

    Raises:
        TypeError: an argument is not an integer.
        ValueError: a number is too small, or the window larger than the padded image.
    """
    dims = len(input_size)
    kernel, step = per_dim("kernel_size", kernel_size, dims), per_dim("stride", stride, dims)
    before, gap = per_dim("padding", padding, dims), per_dim("dilation", dilation, dims)
    at_least(1, kernel_size=kernel, stride=step, dilation=gap)
    at_least(0, padding=before)
    after = before if behind is None else behind
    count = _stops_up if ceil_mode else _stops_down
    stops = tuple(map(count, input_size, kernel, step, gap, before, after))
    if min(stops) < 1:
        spans = tuple(d * (k - 1) + 1 for d, k in zip(gap, kernel))
        room = tuple(map(sum, zip(input_size, before, after)))
        raise ValueError(f"the window spans {spans} pixels, and the input with its padding has {room}")
    return Window(input_size, stops, kernel, step, gap, before)


def _stops_down(length: int, kernel: int, stride: int, dilation: int, before: int, behind: int) -> int:
    return (before + length + behind - dilation * (kernel - 1) - 1) // stride + 1


def _stops_up(length: int, kernel: int, stride: int, dilation: int, before: int, behind: int) -> int:
    # A last stop that reaches beyond the padding must begin within the image or the padding before it.
    free = before + length + behind - dilation * (kernel - 1) - 1
    return min(-(-free // stride) + 1, -(-(before + length) // stride))


def pool_window(
    input_size: tuple[int, ...], kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Window:
    """Return the window of a pooling operation.

    Args:
        input_size: the lengths of the image.
        kernel_size, padding, dilation: one number, or one for each dimension.
        stride: one number, or one for each dimension; ``kernel_size`` if ``None``.
        ceil_mode: whether to add a last stop that begins within the image and reaches beyond the padding.

    Raises:
        TypeError: an argument is not an integer.
        ValueError: the window is larger than the padded input, or the padding more than half the window.
    """
    stride = kernel_size if stride is None or (isinstance(stride, (tuple, list)) and not stride) else stride
    window = window_over(input_size, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)
    if any(2 * p > k for p, k in zip(window.padding, window.kernel_size)):
        raise ValueError(f"padding {window.padding} must be at most half of kernel_size {window.kernel_size}")
    return window


def per_dim(name: str, value: Any, dims: int) -> tuple[int, ...]:
    """Return ``value`` as one integer for each dimension.

    Args:
        name: name of the argument, for messages.
        value: an integer, or a sequence of one or ``dims`` integers.
        dims: number of dimensions.

    Raises:
        TypeError: ``value`` does not hold integers.
        ValueError: ``value`` has another number of integers.
    """
    if type(value) is int:
        return (value,) * dims
    given = one_each(name, value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value, dims)
    if not all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in given):
        raise TypeError(f"{name} must be an integer or {dims} of them, and you gave {value!r}")
    return tuple(map(int, given))


def one_each(name: str, value: Any, dims: int) -> tuple[Any, ...]:
    """Return ``value`` as one value for each dimension.

    Args:
        name: name of the argument, for messages.
        value: any value, or a tuple or list of ``dims`` values.
        dims: number of dimensions.

    Raises:
        ValueError: ``value`` has another number of values.
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims
    if len(given) != dims:
        raise ValueError(f"{name} must be a number or {dims} of them, and you gave {value}")
    return given


def at_least(low: int, **given: tuple[int, ...]) -> None:
    """Raise if a number of a named argument is below ``low``.

    Raises:
        ValueError: a number is too small; the message names its argument.
    """
    for name, numbers in given.items():
        if min(numbers, default=low) < low:
            raise ValueError(f"{name} must be at least {low}, and you gave {numbers}")
