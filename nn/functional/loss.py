"""Losses of regression: squared and absolute differences, and likelihoods of continuous and counted targets.

In all losses, ``size_average`` and ``reduce`` are the deprecated form of ``reduction``; they keep their positions.
"""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import core
from ...core.extend import Row, Tensor, as_array, check_broadcast, keep, operation, record, records, reduced
from .reduction import chosen_reduction

__all__ = [
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def _huber_rule(xp: Any, g: Any, difference: Any, delta: float, divisor: float) -> Any:
    slope = difference.clip(-delta, delta)
    return g * (slope if divisor == 1 else slope / divisor)


_HUBER = Row("huber_loss", _huber_rule)


@operation
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the squared differences ``(input - target) ** 2``.

    Args:
        input, target: broadcast together, floating-point.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".
        weight: factors of the losses, broadcast to them; the mean is divided by the weights' sum.

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: an unknown reduction, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return core.mse_loss(input, target, reduction)
    return _weighted(core.mse_loss(input, target, "none"), weight, reduction)


@operation
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute differences ``abs(input - target)``.

    Args:
        input, target: broadcast together, floating-point.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".
        weight: factors of the losses, broadcast to them; the mean is divided by the weights' sum.

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: an unknown reduction, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return core.l1_loss(input, target, reduction)
    return _weighted(core.l1_loss(input, target, "none"), weight, reduction)


@operation
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return ``d ** 2 / (2 * beta)`` where the difference d is below ``beta``, ``d - beta / 2`` elsewhere (Girshick 2015).

    Args:
        input, target: broadcast together, floating-point; d is ``abs(input - target)``.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".
        beta: where the loss becomes linear; 0 gives ``l1_loss``.

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: ``beta`` is negative, an unknown reduction, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise ValueError(f"beta must not be negative, and you gave {beta}")
    if not beta:
        return core.l1_loss(input, target, reduction)
    return reduced(_huber("smooth_l1_loss", input, target, beta, beta), reduction)


@operation
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return ``d ** 2 / 2`` where the difference d is below ``delta``, ``delta * (d - delta / 2)`` elsewhere (Huber 1964).

    Args:
        input, target: broadcast together, floating-point; d is ``abs(input - target)``.
        reduction: "mean", "sum" or "none".
        delta: where the loss becomes linear, above 0.
        weight: factors of the losses, broadcast to them.

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: ``delta`` is not positive, an unknown reduction, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(None, None, reduction)
    if delta <= 0:
        raise ValueError(f"delta must be positive, and you gave {delta}")
    losses = _huber("huber_loss", input, target, delta, 1.0)
    return reduced(losses if weight is None else losses * weight, reduction)


def _huber(name: str, input: Tensor, target: Tensor, delta: float, divisor: float) -> Tensor:
    check_broadcast(name, input, target)
    difference = input - target
    away = difference.numpy(force=True)
    near = away.clip(-delta, delta)
    beyond = away - near * 0.5
    values = beyond * (near if divisor == 1 else near / divisor)  # both factors have the sign of the difference
    result = Tensor(as_array(values).astype(away.dtype, copy=False))
    return record(_HUBER, result, (difference,), (keep(difference),), delta, divisor) if records(difference) else result


def _weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return (losses * weight).sum() / weight.sum()
    return reduced(losses * weight, reduction)


@operation
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence ``target * (log(target) - input)``.

    Args:
        input: log-probabilities, floating-point.
        target: probabilities, or with ``log_target`` their logarithms; broadcast with the input.
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "batchmean" (the sum divided by the first length, the divergence as mathematics defines it), "mean"
            (which divides by the number of elements, and warns), "sum" or "none".
        log_target: whether the target holds logarithms.

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: an unknown reduction, or the shapes cannot be broadcast.
    """
    if reduction == "batchmean":
        wanted = "sum"
    else:
        wanted = reduction = chosen_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            'kl_div() with reduction="mean" divides by the number of elements; "batchmean" divides by that of samples',
            stacklevel=3,
        )
    losses = core.exp(target) * (target - input) if log_target else _times_log(target) - target * input
    total = reduced(losses, wanted)
    return total / input.shape[0] if reduction == "batchmean" and input.ndim else total


def _times_log(x: Tensor) -> Tensor:
    # x * log(x), which is 0 at 0.
    positive: Tensor = core.where(x == 0, Tensor(np.ones((), x.dtype)), x)
    return x * core.log(positive)


@operation
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-08,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts under Poisson distributions: ``exp(input) - target * input``.

    Args:
        input: logarithms of the rates, or without ``log_input`` the rates, whose loss is ``input - target * log(input +
            eps)``.
        target: counts, broadcast with the input.
        log_input: whether the input holds logarithms.
        full: whether Stirling's approximation of ``log(target!)`` is added: it does not depend on the input.
        size_average, reduce: deprecated; use ``reduction``.
        eps: keeps the logarithm of a rate of 0 finite.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: an unknown reduction, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    losses = core.exp(input) - target * input if log_input else input - target * core.log(input + eps)
    if full:
        large: Tensor = core.where(target > 1, target, Tensor(np.ones((), target.dtype)))
        stirling = target * core.log(large) - target + core.log(large * (2 * math.pi)) * 0.5
        losses = losses + stirling * (target > 1)
    return reduced(losses, reduction)


@operation
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """Return the negative log-likelihood under normal distributions: ``(log(var) + (input - target) ** 2 / var) / 2``.

    Args:
        input: means, floating-point.
        target: broadcast with the input.
        var: variances: a number, or of the input's shape, with some dimensions 1 or the last missing.
        full: whether the constant ``log(2 * pi) / 2`` is added.
        eps: smaller variances count as this, which has no influence on gradients.
        reduction: "mean", "sum" or "none".

    Returns:
        A scalar, or for "none" the broadcast shape.

    Raises:
        ValueError: a shape does not fit, a variance is negative, or an unknown reduction.
    """
    reduction = chosen_reduction(None, None, reduction)
    variances = var if isinstance(var, Tensor) else core.full(input.shape, float(var), dtype=input.dtype)
    if variances.shape == input.shape[:-1] and variances.shape != input.shape:
        variances = variances.unsqueeze(-1)
    elif variances.ndim != input.ndim or any(one not in (1, n) for one, n in zip(variances.shape, input.shape)):
        raise ValueError(
            f"var must have the input's shape {input.shape}, with dimensions of 1 or the last missing, not {var.shape}"
        )
    values = variances.numpy(force=True)
    if (values < 0).any():
        raise ValueError("var must not have negative elements")
    # Raised outside the graph: gradients are those of a variance that was this large.
    safe = variances + Tensor(np.maximum(eps - values, 0).astype(values.dtype))
    difference = input - target
    losses = (core.log(safe) + difference * difference / safe) * 0.5
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
