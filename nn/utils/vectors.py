"""Conversion of all parameters of a model to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...core import cat
from ...core.extend import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters as one vector; the result is recorded."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set all parameters to the values of a vector, as views of its memory.

    Args:
        vec: shape (total,), where total is the number of elements of all parameters.
        parameters: tensors that are set, in this order.

    Raises:
        TypeError: ``vec`` is not a tensor.
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
