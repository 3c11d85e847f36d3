"""Shifting and scaling to mean 0 and variance 1."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence

from ...core.extend import Tensor

__all__ = ["layer_norm"]


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the last dimensions, those of ``normalized_shape``.

    Raises:
        ValueError: the input's last dimensions are others.
    """
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"layer_norm() over {shape} needs an input of shape (..., *{shape}), not {input.shape}")
    dims = tuple(range(-len(shape), 0))
    centred = input - input.mean(dims, True)
    result = centred / ((centred * centred).mean(dims, True) + eps).sqrt()
    result = result if weight is None else result * weight
    return result if bias is None else result + bias
