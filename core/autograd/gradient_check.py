"""``gradcheck``: comparison of gradients with central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...base.errors import TelegradError
from ..tensors import Tensor
from ..types import Array
from .gradients import grad

_PRECISE = (np.dtype(np.float64), np.dtype(np.complex128))


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
    fast_mode: bool = False,
) -> bool:
    """Return whether the gradients of ``func(*inputs)`` agree with central differences.

    Complex numbers count as pairs of real ones, in inputs and outputs: the gradient of a real ``L`` by ``x + iy`` is
    ``dL/dx + i dL/dy``, as in PyTorch.

    Args:
        func: returns a tensor or a tuple of tensors, and always the same for the same inputs.
        inputs: tensors (those that require grad are checked and must be ``float64`` or ``complex128``), and other values.
        eps: the step of the differences.
        atol: the absolute tolerance of each element.
        rtol: the relative tolerance of each element.
        raise_exception: raise, instead of returning ``False``.
        fast_mode: compare one product ``v @ jacobian @ u`` with random ``v`` and ``u`` instead of all elements: two calls of
            ``func`` and one backward pass for each input and output, however large they are.

    >>> gradcheck(lambda x: x.sin() * x, Tensor(np.ones(3), requires_grad=True))
    True

    Raises:
        GradcheckError: they differ.
        ValueError: no input requires grad, or an input that does is of another dtype.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    checked = [arg for arg in arguments if isinstance(arg, Tensor) and arg._requires_grad]
    if not checked or any(tensor.dtype not in _PRECISE for tensor in checked):
        raise ValueError(
            "gradcheck() needs inputs that require grad, all of them float64 or complex128: differences need the digits"
        )
    outputs = [(index, output) for index, output in enumerate(_outputs(func, arguments)) if output._requires_grad]
    probe = _Probe(func, arguments, [index for index, _ in outputs], eps)
    compared = (_projected if fast_mode else _whole)([output for _, output in outputs], checked, probe)
    for ((index, _), place), (recorded, numeric, scale) in zip(product(outputs, range(len(checked))), compared):
        if not np.allclose(recorded, numeric, rtol, atol * scale, equal_nan=True):
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
    fast_mode: bool = False,
) -> bool:
    """Return whether the second derivatives of ``func(*inputs)`` agree with differences of the gradients.

    Args:
        func: returns a tensor or a tuple of tensors, and always the same for the same inputs.
        inputs: tensors (those that require grad are checked and must be ``float64`` or ``complex128``), and other values.
        grad_outputs: the gradient of each output that requires grad; random numbers by default.
        eps, atol, rtol, raise_exception, fast_mode: as in ``gradcheck``.

    Raises:
        GradcheckError, ValueError: as ``gradcheck``.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    places = [place for place, arg in enumerate(arguments) if isinstance(arg, Tensor) and arg._requires_grad]
    outputs = [output for output in _outputs(func, arguments) if output._requires_grad]
    random = np.random.default_rng(0)
    if grad_outputs is None:
        weights = [Tensor(_random(random, output.shape, output.dtype), True) for output in outputs]
    else:
        weights = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)

    def gradients(*all_arguments: Any) -> tuple[Tensor, ...]:
        own, given = all_arguments[: len(arguments)], all_arguments[len(arguments) :]
        recorded = [output for output in _outputs(func, own) if output._requires_grad]
        wanted = [own[place] for place in places]
        return grad(recorded, wanted, given, create_graph=True, materialize_grads=True)

    return gradcheck(
        gradients,
        (*arguments, *weights),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        fast_mode=fast_mode,
    )


def _outputs(func: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    result = func(*arguments)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(output for output in results if isinstance(output, Tensor))


class _Probe:
    """Central differences of some outputs of ``func``."""

    def __init__(self, func: Callable[..., Any], arguments: Sequence[Any], indices: Sequence[int], eps: float) -> None:
        self.func, self.arguments, self.indices, self.eps = func, arguments, indices, eps

    def slopes(self, tensor: Tensor, place: Any, direction: Any) -> list[Array]:
        """Return how each output changes, in real numbers, when the elements at ``place`` move along ``direction``."""
        array = tensor._array
        former = array[place].copy()
        try:
            array[place] = former + self.eps * direction
            after = self._values()
            array[place] = former - self.eps * direction
            before = self._values()
        finally:
            array[place] = former
        return [(high - low) / (2 * self.eps) for high, low in zip(after, before)]

    def _values(self) -> list[Array]:
        # func may itself compute gradients, so recording stays on.
        outputs = _outputs(self.func, self.arguments)
        return [_real(outputs[index]._array) for index in self.indices]


# Recorded, numeric, and how much the absolute errors may add up; for each output and each input.
_Compared = Iterator[tuple[Array, Array, float]]


def _whole(outputs: Sequence[Tensor], checked: Sequence[Tensor], probe: _Probe) -> _Compared:
    """Yield whole jacobians, of real numbers (outputs x inputs)."""
    # A pass gives a row for all inputs, a difference a column for all outputs.
    rows = [[_gradients(output, checked, start) for start in _unit_arrays(output)] for output in outputs]
    columns = [
        [probe.slopes(tensor, place, unit) for unit in _units(tensor.dtype) for place in np.ndindex(tensor.shape)]
        for tensor in checked
    ]
    for i, output in enumerate(outputs):
        for j, tensor in enumerate(checked):
            size = len(_real(output._array)), len(_real(tensor._array))
            recorded = np.reshape([row[j] for row in rows[i]], size)
            yield recorded, np.reshape([column[i] for column in columns[j]], size[::-1]).T, 1.0


def _projected(outputs: Sequence[Tensor], checked: Sequence[Tensor], probe: _Probe) -> _Compared:
    """Yield one product of each jacobian with random vectors, and how much absolute errors may add up in it."""
    random = np.random.default_rng(0)
    starts, directions = ([_random(random, each.shape, each.dtype) for each in group] for group in (outputs, checked))
    rows = [_gradients(output, checked, start) for output, start in zip(outputs, starts)]
    columns = [probe.slopes(tensor, ..., direction) for tensor, direction in zip(checked, directions)]
    for i, j in product(range(len(outputs)), range(len(checked))):
        v, u = _real(starts[i]), _real(directions[j])
        yield rows[i][j] @ u, v @ columns[j][i], float(v.sum() * u.sum())


def _gradients(output: Tensor, inputs: Sequence[Tensor], start: Array) -> list[Array]:
    found = grad(output, list(inputs), Tensor(start), retain_graph=True, materialize_grads=True)
    return [_real(gradient._array) for gradient in found]


def _unit_arrays(output: Tensor) -> Iterator[Array]:
    for unit in _units(output.dtype):
        for place in np.ndindex(output.shape):
            array = np.zeros(output.shape, output.dtype)
            array[place] = unit
            yield array


def _units(dtype: Any) -> tuple[complex, ...]:
    return (1, 1j) if dtype.kind == "c" else (1,)


def _real(array: Array) -> Array:
    """Return the elements as a float64 vector: for complex numbers first the real parts, then the imaginary ones."""
    flat = np.asarray(array).reshape(-1)
    parts = (flat.real, flat.imag) if flat.dtype.kind == "c" else (flat,)
    return np.concatenate([part.astype(np.float64) for part in parts])


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return random numbers between 0.5 and 1.5; for complex dtypes, both parts are."""
    numbers = random.uniform(0.5, 1.5, shape)
    return np.asarray(numbers + 1j * random.uniform(0.5, 1.5, shape) if dtype.kind == "c" else numbers)


def _difference(index: int, place: int, recorded: Array, numeric: Array) -> str:
    return (
        f"the gradient of output {index} with respect to checked input {place} differs from the numeric one by up to "
        f"{np.nanmax(np.abs(recorded - numeric)):.3g}\nrecorded (output x input):\n{recorded}\nnumeric:\n{numeric}"
    )
