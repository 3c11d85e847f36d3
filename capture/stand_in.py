"""``StandIn``: an array that records the NumPy functions that are called with it.

It wraps an example, an ordinary array, so shapes, dtypes and strides are those of a real run, and each result is computed
and can be compared. The elements of the example are not to be had: whatever asks for one raises ``Unrecordable``. So a
function that has come to its end with stand-ins did not depend on their elements, except by the calls that were recorded.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core.extend import Array, ArrayLike
from .errors import Unrecordable
from .into import FRESH, cast, copied, in_order, reshaped, strided
from .values import Value

# Of shapes and dtypes only: they are called with the examples, and not recorded.
_QUESTIONS = frozenset([np.shape, np.ndim, np.size, np.result_type, np.iscomplexobj, np.isrealobj, np.can_cast])
# They take the memory of their result as out=.
_INTO = frozenset([np.clip, np.concatenate, np.einsum, np.stack])
_WRITERS = frozenset([np.put, np.putmask, np.place, np.fill_diagonal, np.put_along_axis])
_METHODS = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "choose",
        "clip",
        "compress",
        "conj",
        "conjugate",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "max",
        "mean",
        "min",
        "nonzero",
        "prod",
        "ravel",
        "repeat",
        "round",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "trace",
        "transpose",
        "var",
        "view",
        "flatten",
    ]
)
# Position of out= among their arguments, for those that take it.
_OUT_AT = {
    **dict.fromkeys(["all", "any", "argmax", "argmin", "choose", "dot", "max", "min", "round"], 1),
    **dict.fromkeys(["clip", "compress", "cumprod", "cumsum", "mean", "prod", "std", "sum", "take", "var"], 2),
    "trace": 4,
}
_SIGNATURES = {np.dot: ["a", "b", "out"], np.concatenate: ["arrays", "axis", "out"]}
_PROPERTIES = ("T", "mT", "real", "imag")
_REFUSED = frozenset(
    [
        "item",
        "tolist",
        "tobytes",
        "tofile",
        "dumps",
        "__int__",
        "__float__",
        "__complex__",
        "__index__",
        "__array__",
        "__contains__",
    ]
)


class StandIn(NDArrayOperatorsMixin, ArrayLike):
    """An array that records what is done with it.

    Args:
        tracer: gets the calls: a ``Tracer``.
        value: its name in the program.
        example: an array of that shape, dtype and strides.
        base: the stand-in whose memory it shares, as ``ndarray.base``.
    """

    __slots__ = ("_base", "_example", "_tracer", "_value")

    __array_priority__ = 900  # below that of Tensor

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, tracer: Any, value: Value, example: Array, base: StandIn | None = None) -> None:
        self._tracer, self._value, self._example, self._base = tracer, value, example, base

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method == "__call__" and ufunc.nout == 1:
            function = ufunc
        elif method in ("reduce", "accumulate", "outer"):
            function = getattr(ufunc, method)
        else:
            raise Unrecordable(f"{ufunc.__name__}.{method} is not recorded")
        if out is not None:
            return self._tracer.write(function, inputs, kwargs, out[0])
        return self._tracer.call(function, inputs, kwargs, into=method != "accumulate")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _QUESTIONS:
            return func(*self._tracer.examples(args), **self._tracer.examples(kwargs))
        if func in _WRITERS:
            raise Unrecordable(f"{func.__name__}() writes to an array")
        if func in FRESH:  # with like=, or one of those that end in _like
            return self._tracer.fresh(func, args, kwargs)
        if func is np.copyto:
            return self._tracer.change(func, args, kwargs, args[0])
        if func is np.ascontiguousarray:
            return self._tracer.call(in_order, args, into=True)
        kwargs = dict(kwargs)
        args, out = _without_out(func, args, kwargs)
        if out is not None:
            return self._tracer.write(func, args, kwargs, out)
        return self._tracer.call(func, args, kwargs, into=func in _INTO)

    def __getitem__(self, index: Any) -> Any:
        return self._tracer.call(operator.getitem, (self, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tracer.set_item(self, index, value)

    def __len__(self) -> int:
        return len(self._example)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"StandIn({self.shape}, {self.dtype})"

    @property
    def base(self) -> StandIn | None:
        return self._base

    @property
    def root(self) -> StandIn:
        """The stand-in whose memory it is part of; itself if it has its own."""
        return self if self._base is None else self._base

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """Return the elements in another dtype; itself if it has that and ``copy`` is False."""
        if not copy and self._example.dtype == dtype:
            return self
        return self._tracer.call(cast, (self, np.dtype(dtype)), into=True)

    def copy(self, order: str = "C") -> Any:
        """Return the elements in memory of their own."""
        return self._tracer.call(copied, (self, order), into=True)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return the elements in another shape: a view, or a copy if they are not in order in memory."""
        if order != "C":
            return self._tracer.call(np.ndarray.reshape, (self, *shape), {"order": order})
        return self._tracer.call(reshaped, (self, shape[0] if len(shape) == 1 else shape), into=True)

    def strided(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Return a view of the memory with other strides, which cannot be written to."""
        return self._tracer.call(strided, (self, shape, strides))

    def __bool__(self) -> bool:
        return self._tracer.truth(self)

    def holds(self, condition: Callable[..., Any], args: Any) -> bool:
        """Note a condition of the elements, which replays check first."""
        self._tracer.guard(condition, args)
        return True

    def written(self, function: Callable[..., Any], *args: Any) -> None:
        """Record a call that writes to this array, its first argument."""
        self._tracer.change(function, (self, *args), {}, self)

    def note(self, function: Callable[..., Any], args: Any) -> None:
        """Note a call that changes a tensor from outside, which replays make."""
        self._tracer.outside_change(function, args)

    def fill(self, value: Any) -> None:
        self[...] = value


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self._example, name))


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    def method(self: StandIn, *args: Any, **kwargs: Any) -> Any:
        at = _OUT_AT.get(name, len(args))
        out = args[at] if len(args) > at else kwargs.pop("out", None)
        args = (self, *args[:at])
        called = np.dot if name == "dot" else function
        if out is not None:
            return self._tracer.write(called, args, kwargs, out)
        return self._tracer.call(called, args, kwargs, into=name == "dot")

    return method


def _without_out(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """Return the positional arguments of a function of NumPy without ``out``, and that. It is taken out of ``kwargs``."""
    if "out" in kwargs:
        return args, kwargs.pop("out")
    at = _out_at(function)
    at = len(args) if at is None else at
    if len(args) > at + 1:
        raise Unrecordable(f"{function.__name__}() with out= in the middle of its arguments is not recorded; name it")
    return args[:at], args[at] if len(args) > at else None


@cache
def _out_at(function: Any) -> int | None:
    """Return the position of ``out`` among the parameters of a function of NumPy; ``None`` if it has none."""
    try:
        parameters = inspect.signature(function).parameters.values()
        names = [each.name for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    except ValueError:  # NumPy before 2.4 gives none for what is written in C
        names = _SIGNATURES.get(function, [])
    return names.index("out") if "out" in names else None


def _view(name: str) -> property:
    function = operator.attrgetter(name)
    return property(lambda self: self._tracer.call(function, (self,)))


def _refused(name: str) -> Callable[..., Any]:
    def method(self: StandIn, *args: Any, **kwargs: Any) -> Any:
        raise Unrecordable(f"{name.strip('_')}() looks at the elements of an array")

    return method


for _name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags"):
    setattr(StandIn, _name, _attribute(_name))
for _name in _METHODS:
    setattr(StandIn, _name, _method(_name))
for _name in _PROPERTIES:
    setattr(StandIn, _name, _view(_name))
for _name in _REFUSED:
    setattr(StandIn, _name, _refused(_name))
