"""How a window slides over a given image: the arguments of convolutions and pooling, checked and completed."""

from __future__ import annotations

from ..tensors import Tensor
from .shape.reshaping import unsqueeze
from .sliding import Ints, Sliding, at_least, per_dim


def batched(input: Tensor, dims: int) -> Tensor:
    """``input`` with a batch dimension in front, if it had none.

    Raises:
        ValueError: it has not as many dimensions.
    """
    if input.ndim not in (dims + 1, dims + 2):
        lengths = ", ".join("DHW"[3 - dims :]) if dims > 1 else "L"
        raise ValueError(f"the input must have shape (N, C, {lengths}) or (C, {lengths}), not {input.shape}")
    return input if input.ndim == dims + 2 else unsqueeze(input, 0)


def slide(
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    behind: tuple[int, ...] | None = None,
) -> Sliding:
    """How a window slides over an image with ``padding`` before it and behind it (``behind``: other than before).

    Raises:
        ValueError: a number is too small, or the window larger than the padded image.
    """
    at_least(1, kernel_size=kernel, stride=stride, dilation=dilation)
    at_least(0, padding=padding)
    spaces = [before + after for before, after in zip(padding, padding if behind is None else behind)]
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    room = [length + space for length, space in zip(lengths, spaces)]
    if any(span > free for span, free in zip(spans, room)):
        raise ValueError(f"the window spans {tuple(spans)} pixels, and the input with its padding has {tuple(room)}")
    stops = tuple((free - span) // step + 1 for free, span, step in zip(room, spans, stride))
    return Sliding(lengths, stops, kernel, stride, dilation, padding)


def pool_sliding(
    lengths: tuple[int, ...], kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Sliding:
    """How a pooling window slides.

    Raises:
        ValueError: the window is larger than the padded input, or the padding more than half the window.
    """
    dims = len(lengths)
    kernel, gap = per_dim("kernel_size", kernel_size, dims), per_dim("dilation", dilation, dims)
    steps = kernel if stride is None or stride == [] else per_dim("stride", stride, dims)
    before = per_dim("padding", padding, dims)
    at_least(1, kernel_size=kernel, stride=steps, dilation=gap)
    at_least(0, padding=before)
    if any(2 * space > k for space, k in zip(before, kernel)):
        raise ValueError(f"padding {before} must be at most half of kernel_size {kernel}")
    stops = tuple(map(_stops, lengths, kernel, steps, before, gap, (ceil_mode,) * dims))
    if min(stops) < 1:
        spans = tuple(d * (k - 1) + 1 for d, k in zip(gap, kernel))
        raise ValueError(f"the window spans {spans} elements, and the input has {lengths}, with padding {before}")
    return Sliding(lengths, stops, kernel, steps, gap, before)


def _stops(length: int, kernel: int, stride: int, before: int, dilation: int, ceil_mode: bool) -> int:
    free = length + 2 * before - dilation * (kernel - 1) - 1
    if free < 0 and not ceil_mode:
        return 0
    stops = -(-free // stride) + 1 if ceil_mode else free // stride + 1
    # A last window must begin within the image or the padding before it.
    return stops - 1 if ceil_mode and (stops - 1) * stride >= length + before else stops
