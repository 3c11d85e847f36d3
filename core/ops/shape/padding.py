"""``pad``: elements around a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensors import Tensor
from ...types import Array
from ..table.nodes import record, records
from ..table.operation import operation
from ..table.rows import Row

_PAD = Row("constant_pad_nd", lambda xp, g, inside: xp.get(g, inside))


@operation(function=True)
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return ``input`` with elements added on the sides of its last dimensions, or removed where a number is negative.

    Args:
        input: any shape and dtype; for modes other than "constant", (N, C, ...) or (C, ...).
        pad: number of elements before and after, in pairs, from the last dimension on.
        mode: "constant", "reflect" (the mirror image without the edge), "replicate" (the edge), or "circular" (the
            other end).
        value: the constant, in "constant" mode; 0 if ``None``.

    Returns:
        The input's shape with ``before + after`` added to each padded length, of the input's dtype.

    Raises:
        ValueError: an odd number of lengths, too many of them, an unknown mode, a ``value`` in another mode than
            "constant", or more elements than the input has to give.
    """
    return _padded(input, pad, mode, value)


def _padded(input: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Tensor:
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueError(
            f"pad must be pairs of lengths, at most {input.ndim} for shape {input.shape}, not {tuple(pad)}"
        )
    pairs = [(int(pad[2 * number]), int(pad[2 * number + 1])) for number in range(len(pad) // 2)]
    around = {input.ndim - 1 - number: pair for number, pair in enumerate(pairs)}
    short = {axis: input.shape[axis] + sum(pair) for axis, pair in around.items() if input.shape[axis] + sum(pair) < 0}
    if short:
        raise ValueError(f"the result would have a negative length: pad {tuple(pad)} of shape {input.shape}")
    if mode == "constant":
        return _constant(input, around, 0 if value is None else value)
    if mode not in _INDICES or value is not None:
        raise ValueError(
            'mode must be "constant", "reflect", "replicate" or "circular", and only the first takes a value; you gave '
            f"mode={mode!r} and value={value}"
        )
    if input.ndim - len(around) not in (1, 2):
        raise ValueError(f"mode={mode!r} leaves one or two dimensions in front, and pads {len(around)} of {input.ndim}")
    for axis, pair in around.items():
        if pair != (0, 0):
            input = input[(slice(None),) * axis + (_INDICES[mode](input.shape[axis], *pair),)]
    return input


@operation(function=True)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Return ``input`` with constants on the sides of its last dimensions: ``pad`` in "constant" mode. Errors: ``pad``'s.

    Args:
        input: any shape and dtype.
        pad: number of elements before and after, in pairs, from the last dimension on; removed if negative.
        value: the constant.
    """
    return _padded(input, pad, "constant", value)


def _constant(input: Tensor, around: dict[int, tuple[int, int]], value: float) -> Tensor:
    cut: list[Any] = [slice(None)] * input.ndim
    inside: list[Any] = [slice(None)] * input.ndim
    shape = list(input.shape)
    for axis, (before, after) in around.items():
        cut[axis] = slice(max(-before, 0), shape[axis] - max(-after, 0))
        inside[axis] = slice(max(before, 0), max(before, 0) + len(range(shape[axis])[cut[axis]]))
        shape[axis] += before + after
    kept = input[tuple(cut)]
    out = np.full(shape, value, input.dtype, like=kept._array)
    out[tuple(inside)] = kept._array
    result = Tensor(out)
    return record(_PAD, result, (kept,), (), tuple(inside)) if records(kept) else result


def _reflected(length: int, before: int, after: int) -> Array:
    if max(before, after) >= length:
        raise ValueError(f"reflected padding {(before, after)} must be less than the length {length}")
    indices = np.abs(np.arange(-before, length + after))
    return np.asarray(np.where(indices >= length, 2 * (length - 1) - indices, indices))


def _replicated(length: int, before: int, after: int) -> Array:
    if not length:
        raise ValueError("an empty dimension has no edge to repeat")
    return np.clip(np.arange(-before, length + after), 0, length - 1)


def _wrapped(length: int, before: int, after: int) -> Array:
    if max(before, after) > length:
        raise ValueError(f"circular padding {(before, after)} must not be more than the length {length}")
    # Where one side is cut off, the other repeats what is left.
    first, last = max(-before, 0), length - max(-after, 0)
    return first + np.arange(-max(before, 0), last - first + max(after, 0)) % (last - first)


# For each mode, the function that gives the indices of one dimension's elements after padding.
_INDICES = {"reflect": _reflected, "replicate": _replicated, "circular": _wrapped}
