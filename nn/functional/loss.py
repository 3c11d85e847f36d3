"""Losses of numbers: squared and absolute differences, and likelihoods of continuous and counted targets.

In all losses, ``size_average`` and ``reduce`` are the deprecated form of ``reduction``; they keep their places.
"""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import core
from ...core.extend import Row, Tensor, keep, operation, record, records, reduced
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

_HUBER = Row("huber_loss", lambda xp, g, distance, delta: g * xp.minimum(distance, delta))


@operation
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences, reduced; the mean of weighted ones is divided by the weights' sum."""
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
    """The absolute differences, reduced; the mean of weighted ones is divided by the weights' sum."""
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
    """``huber_loss`` divided by ``beta``: squared differences below ``beta``, absolute ones above.

    Raises:
        ValueError: ``beta`` is negative, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise ValueError(f"beta must not be negative, and you gave {beta}")
    distance = core.l1_loss(input, target, "none")
    if not beta:
        return reduced(distance, reduction)
    return reduced(_huber(distance, beta) / beta, reduction)


@operation
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared differences where they are below ``delta``, and straight on from there (Huber 1964).

    Raises:
        ValueError: ``delta`` is not positive, or the shapes cannot be broadcast.
    """
    reduction = chosen_reduction(None, None, reduction)
    if delta <= 0:
        raise ValueError(f"delta must be positive, and you gave {delta}")
    losses = _huber(core.l1_loss(input, target, "none"), delta)
    return reduced(losses if weight is None else losses * weight, reduction)


def _huber(distance: Tensor, delta: float) -> Tensor:
    away = distance.numpy(force=True)
    near = np.minimum(away, delta)
    result = Tensor(np.asarray(near * (away - 0.5 * near)).astype(away.dtype, copy=False))
    return record(_HUBER, result, (distance,), (keep(distance),), delta) if records(distance) else result


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
    """The Kullback-Leibler divergence of ``exp(input)`` from ``target``.

    Args:
        input: log-probabilities.
        target: probabilities, or with ``log_target`` their logarithms.
        reduction: "batchmean" is what is meant in mathematics: the sum divided by the first length; "mean" divides by
            the number of elements. Also "sum" and "none".
        log_target: see above.

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
    """The negative log-likelihood of counts ``target`` under Poisson distributions.

    Args:
        input: their rates, or with ``log_input`` the logarithms of the rates.
        target: counts.
        log_input: see above.
        full: add Stirling's approximation of ``log(target!)``, which does not depend on the input.
        eps: keeps the logarithm of a rate of 0 finite.
        reduction: "mean", "sum" or "none".
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
    """The negative log-likelihood of ``target`` under normal distributions.

    Args:
        input: their means.
        target: of the same shape.
        var: their variances: a number, or of the input's shape, or with the last dimension 1 or missing.
        full: add the constant ``log(2 * pi) / 2``.
        eps: variances below it count as it; that has no influence on gradients.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: a shape does not fit, or a variance is negative.
    """
    reduction = chosen_reduction(None, None, reduction)
    variances = var if isinstance(var, Tensor) else core.full(input.shape, float(var), dtype=input.dtype)
    if variances.shape == input.shape[:-1] and variances.shape != input.shape:
        variances = variances.unsqueeze(-1)
    elif variances.shape not in (input.shape, (*input.shape[:-1], 1)):
        raise ValueError(
            f"var must have the input's shape {input.shape}, its last dimension 1 or missing, not {var.shape}"
        )
    values = variances.numpy(force=True)
    if (values < 0).any():
        raise ValueError("var must not have negative elements")
    # Raised outside the graph: the gradient is as if it had been that large.
    safe = variances + Tensor(np.maximum(eps - values, 0).astype(values.dtype))
    difference = input - target
    losses = (core.log(safe) + difference * difference / safe) * 0.5
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
