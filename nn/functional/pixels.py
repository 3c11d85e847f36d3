"""Rearranging pixels and channels, and images seen through a grid of places."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import core
from ...core.extend import Tensor, operation

__all__ = ["affine_grid", "channel_shuffle", "grid_sample", "pixel_shuffle", "pixel_unshuffle"]


@operation
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Make pixels of channels: from (..., C * r * r, H, W) to (..., C, H * r, W * r).

    Raises:
        ValueError: the channels cannot be divided so.
    """
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise ValueError(f"the input must have shape (..., C * {r * r}, H, W), not {input.shape}")
    *before, channels, height, width = input.shape
    parts = input.reshape(*before, channels // (r * r), r, r, height, width)
    n = len(before)
    mixed = parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    result = mixed.reshape(*before, channels // (r * r), height * r, width * r)
    return result.clone() if r == 1 else result  # never a view


@operation
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Make channels of pixels: from (..., C, H * r, W * r) to (..., C * r * r, H, W).

    Raises:
        ValueError: the lengths cannot be divided so.
    """
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-2] % r or input.shape[-1] % r:
        raise ValueError(f"the input must have shape (..., C, H * {r}, W * {r}), not {input.shape}")
    *before, channels, height, width = input.shape
    parts = input.reshape(*before, channels, height // r, r, width // r, r)
    n = len(before)
    mixed = parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    result = mixed.reshape(*before, channels * r * r, height // r, width // r)
    return result.clone() if r == 1 else result


@operation
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Take a channel of each group in turn: from (N, C, ...), whose channels are in ``groups`` groups.

    Raises:
        ValueError: the groups do not divide the channels.
    """
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ValueError(f"groups={groups} must divide the channels of an input (N, C, ...) of shape {input.shape}")
    count, channels, *lengths = input.shape
    return input.reshape(count, groups, channels // groups, *lengths).transpose(1, 2).reshape(input.shape)


@operation
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places that ``grid_sample`` reads an image from to move, turn and stretch it.

    Args:
        theta: matrices of shape (N, 2, 3), or (N, 3, 4) for volumes.
        size: of the image that is wanted: (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centres of the outermost pixels, and not their outer edges.

    Returns:
        Shape (N, H, W, 2) or (N, D, H, W, 3): x, y (and z), from -1 to 1.

    Raises:
        ValueError: the shapes do not fit.
    """
    dims = len(size) - 2
    if dims not in (2, 3) or theta.shape != (size[0], dims, dims + 1):
        raise ValueError(f"theta of shape {theta.shape} does not fit images of size {tuple(size)}")
    corners = _told("affine_grid", align_corners)
    axes = [_line(length, corners) for length in size[2:]]
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(size[2:])], axis=-1).astype(theta.dtype)
    places = Tensor(base.reshape(1, -1, dims + 1)) @ theta.transpose(1, 2)
    return places.reshape(size[0], *size[2:], dims)


def _line(length: int, corners: bool) -> Any:
    if length == 1:
        return np.zeros(1)
    ends = np.linspace(-1, 1, length)
    return ends if corners else ends * (length - 1) / length


def _told(name: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            f"{name}() takes align_corners=False; write it out, for it was True in PyTorch once", stacklevel=4
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
    """An image seen at places that need not be pixels.

    Args:
        input: shape (N, C, H, W) or (N, C, D, H, W).
        grid: shape (N, H', W', 2) or (N, D', H', W', 3): x, y (and z) of each place, from -1 to 1.
        mode: "bilinear" or "nearest".
        padding_mode: what is outside: "zeros", "border" for the nearest pixel, "reflection" for the mirror image.
        align_corners: whether -1 and 1 are the centres of the outermost pixels, and not their outer edges.

    Returns:
        Shape (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ValueError: the shapes do not fit, or an unknown mode.
    """
    dims = input.ndim - 2
    if dims not in (2, 3) or grid.shape != (input.shape[0], *grid.shape[1:-1], dims) or grid.ndim != input.ndim:
        raise ValueError(f"a grid of shape {grid.shape} does not fit an input of shape {input.shape}")
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            'mode must be "bilinear" or "nearest", and padding_mode "zeros", "border" or "reflection"; '
            f"you gave {mode!r} and {padding_mode!r}"
        )
    corners = _told("grid_sample", align_corners)
    lengths = input.shape[2:]
    # The grid's last dimension counts from the last of the image.
    places = [_place(grid[..., dims - 1 - axis], lengths[axis], corners, padding_mode) for axis in range(dims)]
    if mode == "nearest":
        return _read(input, [np.rint(place.numpy(force=True)) for place in places])
    lows = [np.floor(place.numpy(force=True)) for place in places]
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=dims):
        weight = None
        for place, low, high in zip(places, lows, corner):
            share = place - Tensor(low) if high else Tensor(low + 1) - place
            weight = share if weight is None else weight * share
        assert weight is not None
        part = _read(input, [low + high for low, high in zip(lows, corner)]) * weight.unsqueeze(1)
        total = part if total is None else total + part
    assert total is not None
    return total


def _place(at: Tensor, length: int, corners: bool, padding_mode: str) -> Tensor:
    place = (at + 1) * ((length - 1) / 2) if corners else ((at + 1) * length - 1) * 0.5
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, length - 1.0) if corners else (-0.5, float(length))
        place = _reflected(place, low, span)
    return place.clamp(0, length - 1)


def _reflected(place: Tensor, low: float, span: float) -> Tensor:
    if not span:
        return place * 0
    distance = core.abs(place - low)
    turns = np.floor(distance.numpy(force=True) / span)
    rest = distance - Tensor((turns * span).astype(place.dtype))
    return core.where(Tensor(turns % 2 == 0), rest + low, span - rest + low)


def _read(input: Tensor, places: list[Any]) -> Tensor:
    inside = np.ones(places[0].shape, bool)
    index: list[Any] = []
    for place, length in zip(places, input.shape[2:]):
        inside &= (place >= 0) & (place < length)
        index.append(np.where(np.isfinite(place), place, 0).clip(0, length - 1).astype(np.int64))
    batch = np.arange(len(input)).reshape(-1, *(1,) * (inside.ndim - 1))
    where = (batch, *index)
    seen = input.permute(0, *range(2, input.ndim), 1)[where]
    seen = seen.permute(0, inside.ndim, *range(1, inside.ndim))
    return seen * Tensor(inside[:, None].astype(input.dtype))
