"""``pad``: elements added around a tensor, constant or taken from the tensor itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor
from ..types import Array
from .linear_maps import LinearMap
from .operation import operation
from .places import FULL, GET

__all__: list[str] = []
METHODS = ()

# For each dimension: how many elements come in front and behind; negative numbers take away.
Widths = tuple[tuple[int, int], ...]


def _surrounded(x: Array, widths: Widths, value: float) -> Array:
    shape = [length + before + after for length, (before, after) in zip(x.shape, widths)]
    out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    out[_inner(x.shape, widths)] = x[_kept(widths)]
    return out


def _inner(shape: tuple[int, ...], widths: Widths) -> tuple[slice, ...]:
    return tuple(
        slice(max(before, 0), length + before + min(after, 0)) for length, (before, after) in zip(shape, widths)
    )


def _kept(widths: Widths) -> tuple[slice, ...]:
    return tuple(slice(max(-before, 0), -max(-after, 0) or None) for before, after in widths)


def _uncovered(g: Array, shape: tuple[int, ...], widths: Widths, value: float) -> Array:
    out = np.zeros(shape, g.dtype)
    out[_kept(widths)] = g[_inner(shape, widths)]
    return out


# Affine with a value that is not 0; the constant part has no gradient.
_CONSTANT = LinearMap("constant_pad", _surrounded, _uncovered)


@operation
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A copy with elements added around.

    Args:
        input: the tensor.
        pad: how many elements come in front and behind: two numbers for the last dimension, two for the one before it,
            and so on. Negative numbers take elements away ("constant" only).
        mode: "constant"; "reflect" (mirrored at the outermost element), "replicate" (the outermost element),
            "circular" (from the other end).
        value: what "constant" fills with, 0 by default.

    Raises:
        ValueError: too many numbers, an odd number of them, or more elements than the mode can give.
    """
    numbers = tuple(int(number) for number in pad)
    if len(numbers) % 2 or len(numbers) > 2 * input.ndim:
        raise ValueError(
            f"pad() takes two numbers for each dimension that is padded, at most {2 * input.ndim} for shape {input.shape}, "
            f"and you gave {numbers}"
        )
    pairs = tuple(zip(numbers[::2], numbers[1::2]))[::-1]
    widths = ((0, 0),) * (input.ndim - len(pairs)) + pairs
    if mode == "constant":
        if any(length + before + after < 0 for length, (before, after) in zip(input.shape, widths)):
            raise ValueError(f"pad() cannot take {numbers} away from shape {input.shape}")
        return _CONSTANT(input, widths, value or 0)
    if mode not in _PLACES:
        raise ValueError(f'pad() takes mode "constant", {", ".join(map(repr, _PLACES))}, and you gave {mode!r}')
    if value:
        raise ValueError(f"pad() takes a value in mode constant only, and you gave {value} with {mode}")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            input = GET(input, (FULL,) * axis + (_places(mode, input.shape[axis], before, after),))
    return input


def _places(mode: str, length: int, before: int, after: int) -> Array:
    most = {"reflect": length - 1, "circular": length, "replicate": before + after if length else 0}[mode]
    if max(before, after) > most or min(before, after) < 0:
        raise ValueError(f"pad() in mode {mode} can add 0 to {most} to a length of {length}, not {(before, after)}")
    return _PLACES[mode](np.arange(-before, length + after), length)


_PLACES: dict[str, Any] = {
    "reflect": lambda places, n: (n - 1) - np.abs((n - 1) - np.abs(places)),
    "replicate": lambda places, n: np.clip(places, 0, n - 1),
    "circular": lambda places, n: places % n,
}
