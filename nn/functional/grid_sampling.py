"""Images sampled at the points of a grid: ``grid_sample``, and ``affine_grid``, which makes grids."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from ... import core
from ...core.extend import ARRAYS, Row, Tensor, fused, operation, record, records
from .grid_corners import Corners, to_pixels

__all__ = ["affine_grid", "grid_sample"]


_PIXELS = Row("grid_pixels", lambda xp, g, factor: g * (factor if xp is ARRAYS else Tensor(factor)))


@operation
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid at which ``grid_sample`` samples an image to move, turn and stretch it.

    Args:
        theta: matrices of shape (N, 2, 3), or (N, 3, 4) for volumes, floating-point: ``theta @ (x, y, 1)`` is the point
            of the input for the point (x, y) of the output.
        size: size of the output: (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges; ``None``
            is ``False``, with a warning.

    Returns:
        Shape (N, H, W, 2) or (N, D, H, W, 3): x, y (and z) of each point, from -1 to 1.

    Raises:
        ValueError: the shapes do not fit.
    """
    dims = len(size) - 2
    if dims not in (2, 3) or theta.shape != (size[0], dims, dims + 1):
        raise ValueError(f"theta of shape {theta.shape} does not fit images of size {tuple(size)}")
    corners = _align_corners("affine_grid", align_corners)
    axes = [_axis_points(length, corners) for length in size[2:]]
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(size[2:])], axis=-1).astype(theta.dtype)
    points = Tensor(base.reshape(1, -1, dims + 1)) @ theta.transpose(1, 2)
    return points.reshape(size[0], *size[2:], dims)


def _axis_points(length: int, corners: bool) -> Any:
    """Return the coordinates of one axis' pixels, from -1 to 1."""
    if length == 1:
        return np.zeros(1)
    ends = np.linspace(-1, 1, length)
    return ends if corners else ends * (length - 1) / length


def _align_corners(name: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            f"{name}() takes align_corners=False; write it out: in old versions of PyTorch it was True", stacklevel=4
        )
    return bool(align_corners)


@operation
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return an image sampled at the points of a grid.

    Args:
        input: shape (N, C, H, W) or (N, C, D, H, W), floating-point.
        grid: shape (N, H', W', 2) or (N, D', H', W', 3): x, y (and z) of each point, from -1 to 1.
        mode: "bilinear" (trilinear, for volumes), "nearest" or, for images, "bicubic" (Keys 1981, with a = -0.75).
        padding_mode: values outside the image: "zeros", "border" for the nearest pixel, "reflection" for the mirror
            image.
        align_corners: whether -1 and 1 are the centres of the outermost pixels instead of their outer edges; ``None``
            is ``False``, with a warning.

    Returns:
        Shape (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ValueError: the shapes do not fit, or an unknown mode.
    """
    dims = input.ndim - 2
    if dims not in (2, 3) or grid.shape != (input.shape[0], *grid.shape[1:-1], dims) or grid.ndim != input.ndim:
        raise ValueError(f"a grid of shape {grid.shape} does not fit an input of shape {input.shape}")
    if mode not in ("bilinear", "nearest", "bicubic")[: 5 - dims] or padding_mode not in (
        "zeros",
        "border",
        "reflection",
    ):
        raise ValueError(
            'mode must be "bilinear", "nearest" or, for images, "bicubic", and padding_mode "zeros", "border" or '
            '"reflection"; '
            f"you gave {mode!r} and {padding_mode!r}"
        )
    corners = _align_corners("grid_sample", align_corners)
    lengths = input.shape[2:]
    if mode == "bilinear" and padding_mode == "zeros":
        return _between(input, grid, corners)
    positions = _pixels(grid, lengths, corners)
    if mode == "bicubic":
        return _cubic(input, _by_axis(positions), padding_mode, corners)
    if padding_mode != "zeros":
        parts = (positions[..., axis] for axis in range(dims))
        within = [_within(part, length, corners, padding_mode) for part, length in zip(parts, reversed(lengths))]
        positions = core.stack(within, -1)
    if mode == "nearest":
        return _values_at(input, [np.rint(position.numpy(force=True)) for position in _by_axis(positions)])
    return _between(input, positions)


def _by_axis(positions: Tensor) -> list[Tensor]:
    """Return the positions in each dimension of the image; the grid's last dimension counts from the last of these."""
    return [positions[..., axis] for axis in reversed(range(positions.shape[-1]))]


def _between(input: Tensor, grid: Tensor, corners: bool | None = None) -> Tensor:
    """Return the sums of the pixels around each position, each by its nearness (linear in each dimension).

    Args:
        input: shape (N, C, *lengths).
        grid: the positions, shape (N, *size, dimensions).
        corners: ``align_corners`` of a grid from -1 to 1; ``None`` for one of pixels.
    """
    slopes = None if corners is None else _slopes(input.shape[2:], corners, grid.dtype)
    around = Corners(input._array, grid._array, slopes, bool(corners))
    result = around.forward()
    if not records(input, grid):
        return Tensor(result)
    return fused("GridSampler", (input, grid), (result,), around.backward, partial(_replayed, corners=corners))[0]


def _replayed(input: Tensor, grid: Tensor, corners: bool | None) -> tuple[Tensor]:
    places = _by_axis(grid if corners is None else _pixels(grid, input.shape[2:], corners))
    lows = [np.floor(place.numpy(force=True)) for place in places]
    parts = []
    for corner in itertools.product((0, 1), repeat=len(places)):
        near = zip(places, lows, corner)
        shares = (place - Tensor(low) if high else Tensor(low + 1) - place for place, low, high in near)
        values = _values_at(input, [low + high for low, high in zip(lows, corner)])
        parts.append(values * reduce(operator.mul, shares).unsqueeze(1))
    return (reduce(operator.add, parts),)


def _cubic(input: Tensor, positions: list[Tensor], padding_mode: str, corners: bool) -> Tensor:
    """Return the sums of the 16 pixels around each point; each pixel that is outside is one of the padding."""
    lows = [np.floor(position.numpy(force=True)) for position in positions]
    shares = [_keys(position - Tensor(low)) for position, low in zip(positions, lows)]
    parts = []
    for steps in itertools.product(range(4), repeat=2):
        places = [
            _padded(low + step - 1, length, corners, padding_mode)
            for low, step, length in zip(lows, steps, input.shape[2:])
        ]
        share = shares[0][steps[0]] * shares[1][steps[1]]
        parts.append(_values_at(input, places) * share.unsqueeze(1))
    return reduce(operator.add, parts)


def _keys(t: Tensor) -> list[Tensor]:
    """Return the weights of the four pixels around a point that lies ``t`` behind the second one (Keys 1981, a = -0.75)."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _padded(position: Any, length: int, corners: bool, padding_mode: str) -> Any:
    """Return the whole positions from which pixels outside the image are taken; with "zeros" they stay outside."""
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        low, span = (0.0, length - 1.0) if corners else (-0.5, float(length))
        position = _reflected(Tensor(position), low, span).numpy()
    return position.clip(0, length - 1)


def _pixels(points: Tensor, lengths: Sequence[int], corners: bool) -> Tensor:
    """Return the positions in pixels, counted from the centre of the first one, of coordinates from -1 to 1."""
    slopes = _slopes(tuple(lengths), corners, points.dtype)
    values = points._array.copy()
    to_pixels(values, slopes, corners)
    result = Tensor(values)
    return record(_PIXELS, result, (points,), (), slopes) if records(points) else result


@lru_cache(maxsize=64)
def _slopes(lengths: tuple[int, ...], corners: bool, dtype: Any) -> Any:
    """Return how many pixels there are by number of a grid's coordinates, in its last dimension."""
    return ((np.array(lengths[::-1]) - corners) / 2).astype(dtype)


def _within(position: Tensor, length: int, corners: bool, padding_mode: str) -> Tensor:
    """Return the positions, moved into the image."""
    if padding_mode == "reflection":
        low, span = (0.0, length - 1.0) if corners else (-0.5, float(length))
        position = _reflected(position, low, span)
    # At the very ends the gradient is 0, as it is outside.
    inside = (position > 0) & (position < length - 1)
    return core.where(inside, position, position.detach().clamp(0, length - 1))


def _reflected(position: Tensor, low: float, span: float) -> Tensor:
    if not span:
        return position * 0
    distance = core.abs(position - low)
    turns = np.floor(distance.numpy(force=True) / span)
    rest = distance - Tensor((turns * span).astype(position.dtype))
    return core.where(Tensor(turns % 2 == 0), rest + low, span - rest + low)


def _values_at(input: Tensor, positions: list[Any]) -> Tensor:
    """Return the pixels at whole positions, and 0 outside the image."""
    inside = np.ones(positions[0].shape, bool)
    index: list[Any] = []
    for position, length in zip(positions, input.shape[2:]):
        inside &= (position >= 0) & (position < length)
        index.append(np.where(np.isfinite(position), position, 0).clip(0, length - 1).astype(np.int64))
    batch = np.arange(len(input)).reshape(-1, *(1,) * (inside.ndim - 1))
    where = (batch, *index)
    seen = input.permute(0, *range(2, input.ndim), 1)[where]
    seen = seen.permute(0, inside.ndim, *range(1, inside.ndim))
    return seen * Tensor(inside[:, None].astype(input.dtype))
