"""Functions that a saved plan may call, by name: NumPy's functions of arrays, operations, and the calls of the recording.

None of them opens files, makes objects of other classes, or calls functions that it is given.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.extend import OPERATIONS, accumulate_grad
from ..nn.extend import Steps, Weights
from .cast import cast
from .mirrors import node_at, run_node
from .program import array_at, call_whole
from .recorder import clear_gradient
from .tracer import array_in

_FUNCTIONS = (
    "all any argmax argmin argsort broadcast_to clip concatenate copy cumprod cumsum diagonal diff dot einsum expand_dims "
    "flip fmax full_like matmul max mean min moveaxis ndim nonzero ones_like outer pad prod ravel repeat reshape roll round "
    "sort split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose tril triu var where "
    "zeros_like isclose nan_to_num real imag conj angle flatnonzero searchsorted unique bincount rot90 cross inner vdot kron"
)
_METHODS = (
    "all any argmax argmin argsort choose clip compress conj conjugate copy cumprod cumsum diagonal dot flatten max mean min "
    "nonzero prod ravel repeat reshape round squeeze std sum swapaxes take trace transpose var view"
)
_OF_UFUNCS = ("reduce", "accumulate", "outer")
_ATTRIBUTES = ("T", "mT", "real", "imag")
_OURS = (cast, call_whole, array_at, array_in, node_at, run_node, accumulate_grad, clear_gradient)
# Operations that read memory or objects of other libraries, or change what a tensor is.
_NOT = frozenset(["frombuffer", "from_dlpack", "from_numpy", "resize_", "resize_as_", "set_", "to_sparse"])
# Classes of arguments: the class, and the function that returns what an object is made of.
OBJECTS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "Steps": (Steps, lambda steps: (list(steps.counts), steps.reverse)),
    "Weights": (Weights, tuple),
}
# Those whose results may be larger than their arguments by a number among these.
SIZED = frozenset(["broadcast_to", "full_like", "ndarray.repeat", "pad", "repeat", "tile", "call_whole", "bincount"])


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions by name; operations are ``operation.NAME``."""
    found: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _FUNCTIONS.split()}
    found.update({f"ndarray.{name}": getattr(np.ndarray, name) for name in _METHODS.split()})
    found.update({f"attribute.{name}": operator.attrgetter(name) for name in _ATTRIBUTES})
    for name in dir(np):
        ufunc = getattr(np, name)
        if isinstance(ufunc, np.ufunc) and ufunc.nout == 1:
            found[ufunc.__name__] = ufunc
            found.update({f"{ufunc.__name__}.{method}": getattr(ufunc, method) for method in _OF_UFUNCS})
    found.update({each.__name__: each for each in _OURS})
    found.update(getitem=operator.getitem, setitem=operator.setitem)
    found.update({f"operation.{name}": each for name, each in OPERATIONS.items() if name not in _NOT})
    return found


@cache
def _names() -> dict[Any, str]:
    return {each: name for name, each in functions().items() if not name.startswith("attribute.")}


def name_of(function: Any) -> str | None:
    """Return the name of a function; ``None`` if a saved plan may not call it."""
    if type(function) is operator.attrgetter:
        name = f"attribute.{function.__reduce__()[1][0]}"
        return name if name in functions() else None
    return _names().get(function)
