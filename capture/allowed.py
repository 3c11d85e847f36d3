"""Functions that a saved plan may call, by name: NumPy's functions of arrays, operations, and the calls of the recording.

None of them opens files, makes objects of other classes, or calls functions that it is given.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.extend import OPERATIONS, Array, accumulate_grad, add_at, add_runs, memory_address, within, write_sums
from ..nn.extend import Steps, Weights, add_pixels, gather_pixels, move_running
from .gradients import clear_gradient
from .into import cast, copied, in_order, reshaped, strided
from .mirrors import node_at, run_node
from .program import array_at, call_whole
from .tracer import array_in, condition_of

_FUNCTIONS = (
    "all angle any argmax argmin argsort bincount broadcast_to clip concatenate conj copy copyto cross cumprod "
    "cumsum diagonal diff dot einsum empty expand_dims flatnonzero flip full full_like imag inner isclose kron "
    "matmul max mean min moveaxis nan_to_num ndim nonzero ones ones_like outer pad prod ravel real repeat reshape "
    "roll rot90 round searchsorted sort split squeeze stack std sum swapaxes take take_along_axis tensordot tile "
    "trace transpose tril triu unique var vdot where zeros zeros_like "
)
_METHODS = (
    "all any argmax argmin argsort choose clip compress conj conjugate copy cumprod cumsum diagonal dot flatten max mean min "
    "nonzero prod ravel repeat reshape round squeeze std sum swapaxes take trace transpose var view"
)
_OF_UFUNCS = ("reduce", "accumulate", "outer")
_ATTRIBUTES = ("T", "mT", "real", "imag")
_OURS = (
    cast,
    copied,
    in_order,
    reshaped,
    call_whole,
    array_at,
    array_in,
    condition_of,
    within,
    node_at,
    run_node,
    accumulate_grad,
    add_at,
    add_runs,
    write_sums,
    add_pixels,
    gather_pixels,
    clear_gradient,
    move_running,
)
# Operations that read memory or objects of other libraries, or change what a tensor is.
_NOT = frozenset(["frombuffer", "from_dlpack", "from_numpy", "resize_", "resize_as_", "set_", "to_sparse"])
# Classes of arguments: the class, and the function that returns what an object is made of.
OBJECTS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "Steps": (Steps, lambda steps: (list(steps.counts), steps.reverse)),
    "Weights": (Weights, tuple),
}
# Those whose results may be larger than their arguments by a number among these.
SIZED = frozenset(
    [
        "empty",
        "full",
        "ones",
        "zeros",
        "broadcast_to",
        "full_like",
        "ndarray.repeat",
        "pad",
        "repeat",
        "tile",
        "call_whole",
        "bincount",
    ]
)


def bounded(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return what ``strided`` returns.

    Raises:
        ValueError: an element would lie outside of the array's memory.
    """
    low, high = np.lib.array_utils.byte_bounds(array)
    reach = [(length - 1) * step for length, step in zip(shape, strides)]
    first = memory_address(array) + sum(each for each in reach if each < 0)
    last = memory_address(array) + sum(each for each in reach if each > 0) + array.itemsize
    if len(shape) != len(strides) or min(shape, default=1) < 1 or not array.size or first < low or last > high:
        raise ValueError(f"a view of shape {shape} with the strides {strides} leaves the memory of its array")
    return strided(array, shape, strides)


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
    found["strided"] = bounded  # a forged plan cannot read other memory
    found.update(getitem=operator.getitem, setitem=operator.setitem)
    found.update({f"operation.{name}": each for name, each in OPERATIONS.items() if name not in _NOT})
    return found


@cache
def _names() -> dict[Any, str]:
    names = {each: name for name, each in functions().items() if not name.startswith("attribute.")}
    return {**names, strided: "strided"}


def name_of(function: Any) -> str | None:
    """Return the name of a function; ``None`` if a saved plan may not call it."""
    if type(function) is operator.attrgetter:
        name = f"attribute.{function.__reduce__()[1][0]}"
        return name if name in functions() else None
    return _names().get(function)
