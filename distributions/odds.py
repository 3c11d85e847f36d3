"""Base classes of distributions that are given by probabilities or by logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import clamp, log, log1p, log_softmax, logaddexp, sigmoid, softmax, zeros_like
from ..core.extend import Tensor
from .distribution import Distribution, broadcast_all


def one_of(name: str, probs: Any, logits: Any) -> None:
    """Check that exactly one of two parameters is given.

    Args:
        name: the distribution, for the error.
        probs: probabilities or ``None``.
        logits: logits or ``None``.

    Raises:
        ValueError: both are given, or neither.
    """
    if (probs is None) == (logits is None):
        given = "neither" if probs is None else "both"
        raise ValueError(f"{name} needs either probs or logits, and you gave {given}")


class Odds(Distribution):
    """Distribution of two outcomes: ``probs`` is ``sigmoid(logits)``; the one that was not given is computed.

    Args:
        probs: probabilities of a success, any shape: the batch shape.
        logits: ``log(probs / (1 - probs))``, instead of ``probs``.
        validate_args: see ``Distribution``.
        others: more parameters, by name, that are broadcast with it and take its dtype.
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None, **others: Any) -> None:
        one_of(type(self).__name__, probs, logits)
        name, value = ("probs", probs) if logits is None else ("logits", logits)
        given, *rest = broadcast_all(value, *others.values())
        vars(self).update({name: given}, **{each: value.to(given.dtype) for each, value in zip(others, rest)})
        super().__init__(given.shape, validate_args=validate_args)

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        if name == "probs" and "logits" in own:
            return sigmoid(own["logits"])
        if name == "logits" and "probs" in own:
            probs = clamped(own["probs"])
            return log(probs) - log1p(-probs)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class Choice(Distribution):
    """Distribution of outcomes along the last dimension: ``probs`` is ``softmax(logits)``. Both are normalised."""

    def _take(self, probs: Any, logits: Any, validate_args: bool | None) -> tuple[int, ...]:
        if validate_args is not None:
            self._validate_args = validate_args
        name = type(self).__name__
        one_of(name, probs, logits)
        given: Tensor = probs if logits is None else logits
        if not isinstance(given, Tensor) or not given.ndim:
            raise ValueError(f"{name} needs a tensor of at least one dimension, the last of which are the outcomes")
        if logits is None:
            if self._validate_args and not bool((probs.detach() >= 0).all()):
                raise ValueError(
                    f"{name}: parameter probs must be numbers of at least 0, and you gave {probs.detach()}"
                )
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = log_softmax(logits, -1)
        return given.shape

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        if name == "probs" and "logits" in own:
            return softmax(own["logits"], -1)
        if name == "logits" and "probs" in own:
            return log(clamped(own["probs"]))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


def clamped(probs: Tensor) -> Tensor:
    """Return probabilities clamped to ``eps`` and ``1 - eps`` of their dtype, so that logarithms are finite."""
    eps = float(np.finfo(probs.dtype).eps)
    return clamp(probs, eps, 1 - eps)


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``, without overflow."""
    return logaddexp(x, zeros_like(x))
