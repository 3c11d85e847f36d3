"""Dropout of elements, of whole channels, and alpha dropout, which keeps mean and variance."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
import warnings

from ... import core
from ...core.extend import Tensor, operation
from .activation import SELU_ALPHA, SELU_SCALE

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


@operation
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with random elements zeroed and the others divided by ``1 - p`` (Srivastava et al. 2014).

    Args:
        input: any shape, floating-point.
        p: probability with which each element is zeroed.
        training: whether to do so; if not, the result is ``input``.
        inplace: whether to write into ``input``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """
    return _into(input, core.dropout(input, p, training), inplace)


@operation
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with random channels zeroed and the others divided by ``1 - p``.

    Args:
        input: shape (N, C, L) or (C, L), floating-point.
        p: probability with which each channel is zeroed.
        training: whether to do so; if not, the result is ``input``.
        inplace: whether to write into ``input``.

    Raises:
        ValueError: ``p`` is not within 0 and 1, or the input has another number of dimensions.
    """
    return _channels(input, 1, p, training, inplace)


@operation
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with random channels zeroed and the others divided by ``1 - p`` (Tompson et al. 2015).

    Args:
        input: shape (N, C, H, W), floating-point. As in PyTorch, a 3-d input is taken as (N, C, L), and each element of
            a 2-d one is a channel, with a warning.
        p: probability with which each channel is zeroed.
        training: whether to do so; if not, the result is ``input``.
        inplace: whether to write into ``input``.

    Raises:
        ValueError: ``p`` is not within 0 and 1, or the input has another number of dimensions.
    """
    if input.ndim == 3:
        warnings.warn("dropout2d() takes a 3-d input as (N, C, L); use dropout1d() for that", stacklevel=3)
        return _channels(input, 1, p, training, inplace)
    if input.ndim == 2:
        warnings.warn("dropout2d() has no channels in a 2-d input; use dropout() for that", stacklevel=3)
        return _channels(input, 0, p, training, inplace)
    return _channels(input, 2, p, training, inplace)


@operation
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return ``input`` with random channels zeroed and the others divided by ``1 - p``.

    Args:
        input: shape (N, C, D, H, W) or (C, D, H, W), floating-point.
        p: probability with which each channel is zeroed.
        training: whether to do so; if not, the result is ``input``.
        inplace: whether to write into ``input``.

    Raises:
        ValueError: ``p`` is not within 0 and 1, or the input has another number of dimensions.
    """
    return _channels(input, 3, p, training, inplace)


@operation
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return ``input`` with random elements set to the lower limit of ``selu``, and all rescaled (Klambauer et al. 2017).

    The rescaling, ``a * x + b``, keeps mean 0 and variance 1.

    Args:
        input: any shape, floating-point.
        p: probability with which each element is set.
        training: whether to do so; if not, the result is ``input``.
        inplace: whether to write into ``input``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """
    return _alpha(input, input.shape, p, training, inplace)


@operation
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return ``alpha_dropout`` of whole channels.

    Args:
        input: shape (N, C, ...), floating-point.
        p: probability with which each channel is set to the lower limit of ``selu``.
        training: whether to do so; if not, the result is ``input``.
        inplace: whether to write into ``input``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """
    return _alpha(input, (*input.shape[:2], *(1,) * (input.ndim - 2)), p, training, inplace)


def _channels(input: Tensor, dims: int, p: float, training: bool, inplace: bool) -> Tensor:
    if input.ndim not in (dims + 1, dims + 2):
        raise ValueError(f"the input must have {dims + 1} or {dims + 2} dimensions, and has shape {input.shape}")
    whole = core.ones(*input.shape[: input.ndim - dims], *(1,) * dims, dtype=input.dtype)
    kept = core.dropout(whole, p, training)
    return input if kept is whole else _into(input, input * kept, inplace)


def _alpha(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"p must be a probability between 0 and 1, and you gave {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, input * 0, inplace)
    lowest = -SELU_ALPHA * SELU_SCALE
    scale = 1 / math.sqrt((lowest**2 * p + 1) * (1 - p))
    kept = core.Tensor((core.rand(*shape).numpy() >= p).astype(input.dtype))
    return _into(input, input * (kept * scale) + ((1 - kept) * (lowest * scale) - lowest * scale * p), inplace)


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return input.copy_(result) if inplace and result is not input else result
