"""Clipping of gradients, by the norm of all of them together or by value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ...core import no_grad
from ...core.extend import Array, Tensor, wide

Tensors = Tensor | Iterable[Tensor]


@no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place by ``max_norm / norm`` if that is below 1, where ``norm`` is that of all of them together.

    Args:
        parameters: tensors, whose ``.grad`` is scaled; those without one are ignored.
        max_norm: the largest norm.
        norm_type: order of the norm; ``inf`` is the largest element.
        error_if_nonfinite: whether to raise if the norm is nan or infinite.
        foreach: not used.

    Returns:
        The norm before, a 0-d tensor.

    Raises:
        AutogradError: ``error_if_nonfinite``, and the norm is nan or infinite.
    """
    return clip_norm(listed(parameters), max_norm, norm_type, error_if_nonfinite)


def clip_norm(parameters: list[Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """Scale all gradients in place and return the norm before, as ``clip_grad_norm_``; ``compile`` records these calls.

    Args:
        parameters: tensors, whose ``.grad`` is scaled.
        max_norm: the largest norm.
        norm_type: order of the norm.
        error_if_nonfinite: whether to raise if the norm is nan or infinite.
    """
    total = get_total_norm(gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all tensors together, as one vector.

    Args:
        tensors: one tensor or several.
        norm_type: order of the norm; ``inf`` is the largest element.
        error_if_nonfinite: whether to raise if the norm is nan or infinite.
        foreach: not used.

    Returns:
        A 0-d tensor.

    Raises:
        AutogradError: ``error_if_nonfinite``, and the norm is nan or infinite.
    """
    order = float(norm_type)
    given = [elements(each).reshape(-1) for each in listed(tensors) if each.numel()]
    norms = [np.linalg.norm(wide(each), order) for each in given]
    total = np.asarray(np.linalg.norm(norms, order), given[0].dtype) if given else np.zeros((), np.float32)
    if error_if_nonfinite and not np.isfinite(total):
        raise AutogradError(
            f"the gradients' norm of order {order} is {float(total)}; look for what made them so, "
            "or pass error_if_nonfinite=False to scale them all the same"
        )
    return Tensor(total)


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients in place by ``max_norm / total_norm``, if that is below 1.

    Args:
        parameters: tensors, whose ``.grad`` is scaled; those without one are ignored.
        max_norm: the largest norm.
        total_norm: norm of all gradients, as from ``get_total_norm``.
        foreach: not used.
    """
    scale = float(max_norm) / (float(total_norm) + 1e-6)
    # A nan must reach the gradients, and min() would lose it.
    if not scale >= 1:
        for gradient in gradients(listed(parameters)):
            gradient.mul_(scale)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of all gradients, in place, to ``-clip_value`` to ``clip_value``.

    Args:
        parameters: tensors, whose ``.grad`` is changed; those without one are ignored.
        clip_value: the limit.
        foreach: not used.
    """
    clip_values(listed(parameters), float(clip_value))


def clip_values(parameters: list[Tensor], bound: float) -> None:
    """Limit every element of all gradients, as ``clip_grad_value_``; ``compile`` records these calls."""
    for gradient in gradients(parameters):
        gradient.clamp_(-bound, bound)


def elements(tensor: Any) -> Array:
    """Return the elements of a tensor; of a sparse one, those that are stored, with duplicate indices added up."""
    return (tensor.coalesce().values() if tensor.is_sparse else tensor).numpy(force=True)


def listed(tensors: Tensors) -> list[Tensor]:
    """Return one tensor or several as a list."""
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    """Return the gradients of the parameters that have one.

    Raises:
        TypeError: a parameter is not a tensor.
    """
    found = []
    for number, parameter in enumerate(parameters):
        if not isinstance(parameter, Tensor):
            raise TypeError(f"parameters[{number}] must be a tensor, not {type(parameter).__name__}")
        if (gradient := parameter.grad) is not None:
            found.append(gradient)
    return found
