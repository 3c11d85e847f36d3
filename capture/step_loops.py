"""``step_in_loops``: the step of an optimizer as one compiled loop for each parameter, for ``compile(..., fast_math=True)``.

The arithmetic of a step is called with names in the place of arrays: they note which functions of NumPy it calls. The loop
does the same to one element after the other, so that each array is read and written once. Numbers, which are others in each
step, are its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core.extend import Array
from ..optim import Optimizer
from ..optim.extend import updates_run_by
from .errors import Unrecordable
from .loops import FLAGS, SYMBOLS
from .values import Statement

_LEAST = 1 << 15  # elements; with fewer the calls of NumPy take less time than this module
_DTYPES = (np.dtype("float32"), np.dtype("float64"))
_SPARE = "spare"


def with_step_loops(statements: Sequence[Statement]) -> list[Statement]:
    """Return a program whose steps of optimizers run in loops."""
    return [replace(each, function=step_in_loops) if each.function is Optimizer.step else each for each in statements]


def step_in_loops(optimizer: Optimizer) -> None:
    """Do a step of an optimizer, in compiled loops where there are any."""
    with updates_run_by(_run):
        Optimizer.step(optimizer)  # and not that of a subclass, which has called it


def _run(update: Callable[..., None], options: Sequence[Any], arrays: Sequence[Array]) -> bool:
    """Run the update of one parameter in a loop; return whether there is one."""
    if arrays[0].size < _LEAST or not all(map(_is_plain, arrays)) or len({each.dtype for each in arrays}) > 1:
        return False
    noted = _Noted(len(arrays))
    try:
        update(*options, *noted.names)
    except (Unrecordable, TypeError, AttributeError):  # it does something that is no such arithmetic
        return False
    kernel = _compiled(noted.source(), len(arrays), len(noted.numbers), arrays[0].dtype.name)
    kernel(*[each.reshape(-1) for each in arrays], *map(arrays[0].dtype.type, noted.numbers))
    return True


def _is_plain(array: Array) -> bool:
    return array.dtype in _DTYPES and array.flags.carray


class _Noted:
    """The calls of an update.

    Args:
        count: the number of its arrays.

    Attributes:
        names: its arguments: the spare array, and then the others.
        numbers: those that it uses, in order.
    """

    def __init__(self, count: int) -> None:
        self.names = [_Name(self, _SPARE), *[_Name(self, f"x{place}") for place in range(count)]]
        self.numbers: list[Any] = []
        self._lines: list[str] = []
        self._written: dict[str, None] = {}

    def call(self, function: Any, inputs: Sequence[Any], out: _Name | None) -> _Name:
        """Note a call, and return the name of its result.

        Raises:
            Unrecordable: a loop cannot do it.
        """
        form = SYMBOLS.get(function, "one")
        if form.startswith("one"):
            raise Unrecordable(f"no loop has {function.__name__}()")
        target = out or _Name(self, f"y{len(self._lines)}")
        self._lines.append(f"{target.text} = {form.format(*map(self._operand, inputs))}")
        self._written[target.text] = None
        return target

    def _operand(self, each: Any) -> str:
        if isinstance(each, _Name):
            return each.text
        if np.ndim(each) > 0:
            raise Unrecordable("it has an array of its own")
        self.numbers.append(each)
        return f"n{len(self.numbers) - 1}"

    def source(self) -> str:
        """Return the source of the loop."""
        arrays = [each.text for each in self.names[1:]]
        numbers = [f"n{place}" for place in range(len(self.numbers))]
        stores = [f"a{name}[i] = {name}" for name in arrays if name in self._written]
        inside = [*[f"{name} = a{name}[i]" for name in arrays], *self._lines, *stores]
        head = f"def step({', '.join([*[f'a{name}' for name in arrays], *numbers])}):"
        return "\n".join([head, "    for i in range(ax0.size):", *[f"        {line}" for line in inside]])


class _Name(NDArrayOperatorsMixin):
    """The name of an array: NumPy's functions of it are noted.

    Args:
        noted: gets the calls.
        text: the name.
    """

    def __init__(self, noted: _Noted, text: str) -> None:
        self._noted, self.text = noted, text

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, out: Any = (None,), **more: Any) -> _Name:
        if method != "__call__" or more or not isinstance(out[0], (_Name, type(None))):
            raise Unrecordable("it is no plain call")
        return self._noted.call(function, inputs, out[0])


@cache
def _compiled(source: str, arrays: int, numbers: int, dtype: str) -> Callable[..., None]:
    import numba

    names: dict[str, Any] = {"sqrt": np.sqrt}
    exec(source, names)  # made of names of operations
    kind: Any = getattr(numba, dtype)
    signature = numba.void(*[kind[::1]] * arrays, *[kind] * numbers)
    made: Callable[..., None] = numba.njit([signature], fastmath=FLAGS, error_model="numpy")(names["step"])
    return made
