"""Check of one operation: ``OpCheck`` describes it, ``report`` runs it and returns the dtypes and gradient orders that passed.

On each sample: the numeric check of the first and second gradient, and a comparison with the values of a non-contiguous
copy; with ``fast`` only the first gradient of each element, the others along random directions. On the largest sample:
every dtype, compared with the result in float64; a dtype may be refused with a ``TypeError``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core import Tensor, dtypes
from ...core.autograd import gradcheck, gradgradcheck, no_grad

Samples = Callable[["Make"], Iterable[Sequence[Any]]]

# Tolerance of the results in a dtype against those in float64: a few units in the last place of a short computation.
TOLERANCES = {
    "bool": 0.0,
    "uint8": 0.0,
    "int32": 0.0,
    "int64": 0.0,
    "bfloat16": 6e-2,
    "float16": 1e-2,
    "float32": 2e-5,
    "float64": 0.0,
    "complex64": 2e-5,
    "complex128": 1e-12,
}


class Make:
    """Factory of sample tensors; its random numbers depend only on the name of the operation."""

    def __init__(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(
        self, *shape: int, low: float = 0.3, high: float = 1.7, signs: bool = False, requires_grad: bool = True
    ) -> Tensor:
        """Return a float64 tensor with elements between ``low`` and ``high``.

        Args:
            *shape: its shape.
            low: the smallest absolute value.
            high: the largest absolute value.
            signs: whether signs are random; all are positive if not.
            requires_grad: whether the tensor requires grad.
        """
        values = self._random.uniform(low, high, shape)
        if signs:
            values = values * self._random.choice([-1.0, 1.0], shape)
        return Tensor(np.asarray(values), requires_grad)

    def distinct(self, *shape: int, requires_grad: bool = True) -> Tensor:
        """Return a tensor whose elements differ by at least 0.05, for operations that choose or sort."""
        count = int(np.prod(shape))
        return Tensor((self._random.permutation(count) * 0.1 - 0.7).reshape(shape), requires_grad)

    def integers(self, *shape: int, low: int = 0, high: int) -> Tensor:
        """Return an int64 tensor of numbers from ``low`` to below ``high``."""
        return Tensor(np.asarray(self._random.integers(low, high, shape)))

    def booleans(self, *shape: int) -> Tensor:
        """Return a boolean tensor."""
        return Tensor(np.asarray(self._random.random(shape) < 0.5))


@dataclass(frozen=True)
class OpCheck:
    """Check of one operation.

    Args:
        name: the operation's name, or ``name:variant`` for a check with other arguments.
        function: called with each sample.
        samples: returns the argument lists; tensors that require grad are checked numerically.
        orders: 2 to check gradients and gradients of gradients, 1 for gradients only, 0 for neither.
        dtypes: names of the dtypes to try; those that raise ``TypeError`` are not reported.
        reference: NumPy's function for the same, called with arrays; its values must agree.
    """

    name: str
    function: Callable[..., Any]
    samples: Samples
    orders: int = 2
    dtypes: Sequence[str] = tuple(TOLERANCES)
    reference: Callable[..., Any] | None = None


@dataclass
class OpReport:
    """Result of a check.

    Attributes:
        name: the name of the check.
        orders: the order of the gradients that were checked.
        samples: the number of samples.
        shapes: the shapes of the arguments, a string for each sample.
        dtypes: names of the dtypes that the operation supports.
    """

    name: str
    orders: int = 0
    samples: int = 0
    shapes: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)


def report(check: OpCheck, fast: bool = False) -> OpReport:
    """Run a check, and return what passed.

    Args:
        check: it is run on each of its samples.
        fast: compare second gradients, and those of non-contiguous copies, along random directions only.

    Raises:
        AssertionError, GradcheckError: a value or a gradient is wrong; the message names the operation and the sample.
    """
    result = OpReport(check.name, check.orders)
    samples = [tuple(sample) for sample in check.samples(Make(check.name))]
    for sample in samples:
        where = f"{check.name} of {_shapes(sample)}"
        try:
            _values(check, sample)
            _gradients(check, sample, fast)
        except Exception as error:
            error.args = (f"{where}: {error}",)
            raise
        result.samples += 1
        result.shapes.append(_shapes(sample))
    if samples:
        result.dtypes = [name for name in check.dtypes if _holds_in(check, max(samples, key=_size), name)]
    return result


def _values(check: OpCheck, sample: Sequence[Any]) -> None:
    with no_grad():
        expected = _arrays(check.function(*sample))
        for one, other in zip(expected, _arrays(check.function(*map(strided, sample)))):
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12, err_msg="non-contiguous input")
        if check.reference is not None:
            wanted = check.reference(*(arg.numpy(force=True) if isinstance(arg, Tensor) else arg for arg in sample))
            for one, other in zip(expected, wanted if isinstance(wanted, tuple) else (wanted,)):
                np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def _gradients(check: OpCheck, sample: Sequence[Any], fast: bool) -> None:
    if not check.orders or not any(isinstance(arg, Tensor) and arg.requires_grad for arg in sample):
        return
    fast = fast and bool(_size(sample))  # differences of a mean of no elements are NaN
    gradcheck(check.function, sample)
    gradcheck(check.function, [strided(arg) for arg in sample], fast_mode=fast)
    if check.orders > 1:
        gradgradcheck(check.function, sample, fast_mode=fast)


def _holds_in(check: OpCheck, sample: Sequence[Any], name: str) -> bool:
    dtype = getattr(dtypes, "bool_" if name == "bool" else name, None)
    if dtype is None:  # bfloat16 where it is not installed
        return False

    def converted(arg: Any) -> Any:
        return arg.detach().to(dtype) if isinstance(arg, Tensor) and arg.is_floating_point() else arg

    inputs = [converted(arg) for arg in sample]
    try:
        with no_grad():
            results = _arrays(check.function(*inputs))
    except TypeError:
        return False
    if TOLERANCES[name]:
        wide = np.complex128 if dtype.kind == "c" else np.float64
        widened = [arg.to(wide) if isinstance(arg, Tensor) and arg.dtype == dtype else arg for arg in inputs]
        with no_grad():
            for one, other in zip(results, _arrays(check.function(*widened))):
                precise = one if one.dtype.kind in "biuc" else one.astype(np.float64)
                tolerance = TOLERANCES[name]
                np.testing.assert_allclose(precise, other, rtol=tolerance, atol=tolerance, err_msg=f"in {name}")
    return True


def strided(arg: Any) -> Any:
    """Return a tensor of the same values with gaps and reversed dimensions in memory; other arguments as they are."""
    if not isinstance(arg, Tensor) or not arg.ndim:
        return arg
    values = arg.numpy(force=True)
    memory = np.zeros(tuple(2 * length for length in reversed(values.shape)), values.dtype)
    view = memory[tuple(slice(None, None, 2) for _ in values.shape)].transpose()
    view[...] = values
    return Tensor(view, arg.requires_grad)


def _arrays(result: Any) -> list[Any]:
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [item.numpy(force=True) for item in results if isinstance(item, Tensor)]


def _size(sample: Sequence[Any]) -> int:
    return sum(arg.numel() for arg in sample if isinstance(arg, Tensor))


def _shapes(sample: Sequence[Any]) -> str:
    parts = [str(tuple(arg.shape)) if isinstance(arg, Tensor) else repr(arg) for arg in sample]
    return " ".join(parts).replace(", ", ",").replace(",)", ")")
