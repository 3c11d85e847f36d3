"""``gradcheck``: gradients compared with central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TelegradError
from ..tensor import Tensor
from ..types import Array
from .passes import grad


class GradcheckError(TelegradError, RuntimeError):
    """A gradient differs from the numeric one; the message shows both."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether the gradients of ``func(*inputs)`` are those that central differences of step ``eps`` give.

    Args:
        func: returns a tensor or a tuple of tensors, and always the same for the same inputs.
        inputs: tensors (those that require grad are checked and must be ``float64``), and anything else.
        eps: the step.
        atol: how far an element may be off, ...
        rtol: ... plus this share of its size.
        raise_exception: raise, instead of returning ``False``.

    Raises:
        GradcheckError: they differ.
        ValueError: no input requires grad, or one that does is not ``float64``.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [arg for arg in arguments if isinstance(arg, Tensor) and arg._requires_grad]
    if not checked or any(tensor.dtype != np.float64 for tensor in checked):
        raise ValueError("gradcheck() needs inputs that require grad, all of them float64: differences need the digits")
    for index in range(len(_outputs(func, arguments))):
        outputs = _outputs(func, arguments)
        if not outputs[index]._requires_grad:
            continue
        for place, tensor in enumerate(checked):
            recorded = _recorded_jacobian(outputs[index], tensor)
            numeric = _numeric_jacobian(func, arguments, tensor, index, eps)
            if not np.allclose(recorded, numeric, rtol, atol, equal_nan=True):
                if raise_exception:
                    raise GradcheckError(_difference(index, place, recorded, numeric))
                return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """``gradcheck`` of the gradients of ``func`` themselves. Args and errors are those of ``gradcheck``.

    ``grad_outputs`` are what the outputs' gradients begin with, one for each that requires grad; by default some numbers.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    places = [place for place, arg in enumerate(arguments) if isinstance(arg, Tensor) and arg._requires_grad]
    outputs = [output for output in _outputs(func, arguments) if output._requires_grad]
    random = np.random.default_rng(0)
    if grad_outputs is None:
        weights = [Tensor(random.uniform(0.5, 1.5, output.shape), True) for output in outputs]
    else:
        weights = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)

    def gradients(*all_arguments: Any) -> tuple[Tensor, ...]:
        own, given = all_arguments[: len(arguments)], all_arguments[len(arguments) :]
        recorded = [output for output in _outputs(func, own) if output._requires_grad]
        wanted = [own[place] for place in places]
        return grad(recorded, wanted, given, create_graph=True, materialize_grads=True)

    return gradcheck(gradients, (*arguments, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _outputs(func: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    result = func(*arguments)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(output for output in results if isinstance(output, Tensor))


def _recorded_jacobian(output: Tensor, tensor: Tensor) -> Array:
    jacobian = np.zeros((output.numel(), tensor.numel()))
    for row in range(output.numel()):
        start = np.zeros(output.shape, output.dtype)
        start.reshape(-1)[row] = 1
        (gradient,) = grad(output, tensor, Tensor(start), retain_graph=True, materialize_grads=True)
        jacobian[row] = gradient._array.reshape(-1)
    return jacobian


def _numeric_jacobian(
    func: Callable[..., Any], arguments: Sequence[Any], tensor: Tensor, index: int, eps: float
) -> Array:
    columns = []
    array = tensor._array
    # Gradients may be what func computes, so it records even here.
    for place in np.ndindex(array.shape):
        former = array[place].copy()
        values = []
        try:
            for step in (eps, -eps):
                array[place] = former + step
                values.append(_outputs(func, arguments)[index]._array.astype(np.float64).reshape(-1))
        finally:
            array[place] = former
        columns.append((values[0] - values[1]) / (2 * eps))
    size = _outputs(func, arguments)[index].numel()
    return np.stack(columns, 1) if columns else np.zeros((size, 0))


def _difference(index: int, place: int, recorded: Array, numeric: Array) -> str:
    return (
        f"the gradient of output {index} with respect to checked input {place} differs from the numeric one by up to "
        f"{np.nanmax(np.abs(recorded - numeric)):.3g}\nrecorded (output x input):\n{recorded}\nnumeric:\n{numeric}"
    )
