"""What is done to all gradients or all parameters of a model at once (``torch.nn.utils``)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ..core import cat, no_grad
from ..core.errors import AutogradError
from ..core.extend import Tensor


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that together, as one vector, they are not longer than ``max_norm``.

    Args:
        parameters: whose ``.grad``; those without one are passed over.
        max_norm: the longest that the vector may be.
        norm_type: which norm; ``inf`` is the largest element.
        error_if_nonfinite: raise if the norm is nan or infinite.
        foreach: has no meaning here.

    Returns:
        The norm before, a 0-d tensor.

    Raises:
        AutogradError: ``error_if_nonfinite``, and it was.
    """
    gradients = _gradients(parameters)
    norm = _total_norm(gradients, float(norm_type))
    if error_if_nonfinite and not math.isfinite(float(norm)):
        raise AutogradError(
            f"the gradients' norm of order {norm_type} is {float(norm)}; look for what made them so, "
            "or pass error_if_nonfinite=False to scale them all the same"
        )
    scale = max_norm / (float(norm) + 1e-6)
    # A nan must reach the gradients, and min() would lose it.
    if not scale >= 1:
        for gradient in gradients:
            gradient.mul_(scale)
    return norm


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of all gradients, in place, to within ``clip_value`` of 0."""
    for gradient in _gradients(parameters):
        gradient.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters as one vector; gradients flow through it."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give all parameters the values of a vector, as views of its memory.

    Raises:
        TypeError: not a tensor.
        ValueError: the vector has not as many elements as the parameters together.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters() takes a tensor, not {type(vec).__name__}")
    targets = list(parameters)
    wanted = sum(target.numel() for target in targets)
    if vec.shape != (wanted,):
        raise ValueError(f"the parameters have {wanted} elements, and the vector has shape {vec.shape}")
    start, values = 0, vec.detach()
    for target in targets:
        end = start + target.numel()
        target.data = values[start:end].reshape(target.shape)
        start = end


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [gradient for parameter in given if (gradient := parameter.grad) is not None]


def _total_norm(gradients: list[Tensor], norm_type: float) -> Tensor:
    norms = [
        np.linalg.norm(gradient.numpy(force=True).reshape(-1), norm_type) for gradient in gradients if gradient.numel()
    ]
    return Tensor(np.asarray(np.linalg.norm(norms, norm_type), norms[0].dtype) if norms else np.zeros((), np.float32))
