"""``load_plan``: a plan from a file of ``Plan.save``. The file is data: each part is checked before it is used.

Functions are looked up by name (``allowed.py``). The program is then compiled as one that was just recorded: its memory and
chains are planned here, not in the file.
"""

from __future__ import annotations

import keyword
import os
from math import prod
from typing import Any, BinaryIO

import numpy as np

from ..base.errors import ArgumentTypeError, CheckpointError
from ..core.extend import Tensor, dtype_by_name
from ..core.serialization import load
from .allowed import OBJECTS, SIZED, functions
from .loaded import LoadedPlan
from .memory import check_second_half
from .plan import Plan
from .recorded import Input
from .saved import KIND, VERSION, is_dense, laid_out
from .sizes import check_kept, check_size
from .source import Source
from .state import State
from .values import Backward, Kind, Outer, Statement, Value, Wrapped, values_in

_DEEPEST = 20  # arguments in arguments
_MOST = 1 << 20  # statements, values
_LEAST = 1024  # an integer argument that is never too large
_GROWTH = 1 << 30  # the product of those of one call
_TOGETHER = 4  # times the memory of the largest array: what calls make anew in each replay
# Functions that write to their first argument.
_WRITERS = ("copyto", "setitem", "add_at", "add_runs", "write_sums", "gather_pixels", "add_pixels")


def load_plan(f: str | os.PathLike[str] | BinaryIO, *, memory: int = 1 << 30) -> LoadedPlan:
    """Read a plan that ``Plan.save`` wrote. It needs no source of the function that was compiled, and no code in it can run.

    Args:
        f: a path, or an open binary file.
        memory: bytes that the largest array of the plan may take, and all that it keeps between calls. What a call makes anew
            may take four times as much.

    Returns:
        A function of the tensors among the arguments of the recorded call, in their order.

    Raises:
        TypeError: ``f`` or ``memory`` is of another type.
        CheckpointError: the file was cut off, altered or made to do harm, is no plan, or is one of another version; or it needs
            more memory.
        FileNotFoundError: there is no such file.
    """
    if isinstance(memory, bool) or not isinstance(memory, int):
        raise ArgumentTypeError(f"memory must be a number of bytes, as 1 << 30, not {memory!r}")
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "read"):
        raise ArgumentTypeError(f"load_plan() takes a path or an open binary file, not {type(f).__name__}")
    name = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", f)
    data = load(f)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise CheckpointError(f"{name} is not a plan; load_plan() reads what save() of a plan wrote")
    if data.get("version") != VERSION:
        raise CheckpointError(
            f"{name} is a plan of version {str(data.get('version'))[:20]}, and this version of telegrad reads {VERSION}; "
            "record and save it again"
        )
    try:
        return _Reader(data, memory).plan()
    except Exception as error:  # whatever a forged file brings about
        raise CheckpointError(f"{name} cannot be read as a plan: {str(error)[:300]}") from error


class _Reader:
    """Turns the data of a file into a plan.

    Args:
        data: the data.
        memory: limit in bytes.
    """

    def __init__(self, data: dict[str, Any], memory: int) -> None:
        self._data, self._memory = data, memory
        self._values: dict[int, Value] = {}
        self._tensors: list[Tensor] = []
        self._inputs: list[Input] = []

    def plan(self) -> LoadedPlan:
        """Return the plan.

        Raises:
            ValueError: a part of the data is not as it should be.
        """
        data = self._data
        self._inputs = [self._input(*each) for each in data["inputs"]]
        self._tensors = [laid_out(_typed(each, Tensor), strides) for each, strides in data["tensors"]]
        for each in data["values"]:
            self._add_value(*each)
        statements = [self._statement(*each) for each in data["statements"]]
        if len(statements) > _MOST or len(self._values) > _MOST:
            raise ValueError("it has too many calls")
        check_kept(statements, _TOGETHER * self._memory)
        arrays = {_typed(number, int): self._outer((place, found)) for number, place, found in data["arrays"]}
        half, results = _typed(data["half"], int), self._tree(data["results"])
        differentiable = self._tree(data["differentiable"])
        backwards = [self._backward(each, differentiable) for each in data["backwards"]]
        _check_order(statements, half, arrays, results, backwards)
        check_second_half(statements, half)
        inputs: list[Any] = [object() for _ in differentiable[1]] if differentiable else []
        for each in backwards:
            each.inputs = inputs
        source = Source(
            statements, half, arrays, results, self._tensors, len(self._inputs), backwards, inputs, checked=True
        )
        if (size := sum(source.sizes) + source.passing) > self._memory:
            raise ValueError(self._too_much(size))
        plan = Plan(source, self._tensors, State(), _typed(data["label"], str), (), self._inputs)
        if differentiable is not None:
            plan.differentiable(*differentiable)
        plan.prepare()
        return LoadedPlan(plan, self._tensors)

    def _too_much(self, size: int) -> str:
        return f"it needs {size:,} bytes; pass load_plan(..., memory=) that many if you trust it"

    def _input(self, shape: Any, dtype: Any, strides: Any, grad: Any) -> Input:
        given = Input(_sizes(shape), _dtype(dtype), tuple(_typed(each, int) for each in strides), grad)
        if not is_dense(given.shape, given.strides, given.dtype.itemsize):
            raise ValueError("the elements of an argument overlap, or are not side by side")
        self._check_size(given.shape, given.dtype)
        return given

    def _check_size(self, shape: tuple[int, ...], dtype: Any) -> int:
        size = prod(shape) * int(dtype.itemsize)
        if size > self._memory:
            raise ValueError(self._too_much(size))
        return size

    def _add_value(self, number: Any, storages: Any, array: Any) -> None:
        value = Value(_typed(number, int), frozenset(_typed(each, int) for each in storages))
        if value.number < 0 or value.number in self._values:
            raise ValueError(f"value {value.number} is there twice")
        if array is not None:
            shape, dtype, strides, writeable = array
            value.shape, value.dtype, value.writeable = _sizes(shape), _dtype(dtype), _typed(writeable, bool)
            value.strides = tuple(_typed(each, int) for each in strides)
            value.nbytes = self._check_size(value.shape, value.dtype)
            if len(value.strides) != len(value.shape):
                raise ValueError("an array has other strides than dimensions")
        self._values[value.number] = value

    def _statement(
        self, kind: Any, function: Any, args: Any, kwargs: Any, result: Any, target: Any, uses: Any, flags: Any
    ) -> Statement:
        into, escapes, changes = (_typed(each, bool) for each in flags)
        given, named = _typed(self._tree(args), tuple), _typed(self._tree(kwargs), dict)
        for name in named:
            if not _typed(name, str).isidentifier() or keyword.iskeyword(name):
                raise ValueError(f"{name[:40]!r} is no name of an argument")
        statement = Statement(
            Kind[_typed(kind, str)],
            _function(function),
            given,
            named,
            None if result is None else self._values[result],
            into,
            None if target is None else self._values[target],
            frozenset(_typed(each, int) for each in uses),
            escapes,
            changes,
        )
        written = named.get("out", given[0] if function in _WRITERS and given else None)
        if written is not statement.target:
            raise ValueError(f"a call of {function} writes to something else than it says")
        if function in SIZED:
            self._check_integers(statement)
        check_size(function, statement, self._shape, self._memory)
        if into and (statement.result is None or statement.result.shape is None or len(statement.result.storages) != 1):
            raise ValueError("a result that is written into memory is no array of its own")
        return statement

    def _shape(self, outer: Outer) -> tuple[int, ...]:
        return self._tensors[outer.place].shape if outer.found else self._inputs[outer.place].shape

    def _check_integers(self, statement: Statement) -> None:
        """Check the integers among the arguments of a function that can make large arrays of small ones."""
        arrays = [each for each in [*statement.values(), statement.result] if each is not None]
        sizes = [prod(each.shape) for each in arrays if each.shape is not None]
        sizes += [each._array.size for each in self._tensors] + [prod(each.shape) for each in self._inputs]
        largest = max([_LEAST, *sizes])
        numbers = [each for each in _integers((statement.args, statement.kwargs)) if each > 1]
        if max(numbers, default=0) > largest or prod(numbers) > _GROWTH:
            raise ValueError(f"a call on arrays of at most {largest:,} elements has the arguments {str(numbers)[:60]}")

    def _backward(self, part: Any, differentiable: Any) -> Backward:
        mask, start, given, gradients = part
        flags = tuple(_typed(each, bool) for each in mask)
        found = _typed(self._tree(gradients), list)
        if len(found) != len(differentiable[1]):
            raise ValueError("a backward pass gives another number of gradients")
        return Backward(flags, _typed(start, int), [self._values[each] for each in given], [], found)

    def _outer(self, pair: Any) -> Outer:
        place, found = _typed(pair[0], int), _typed(pair[1], bool)
        if not 0 <= place < len(self._tensors if found else self._inputs):
            raise ValueError(f"it names tensor {place}, which it does not have")
        return Outer(place, found)

    def _tree(self, tree: Any, depth: int = 0) -> Any:
        """Return arguments or results that ``encoded`` wrote."""
        if depth > _DEEPEST:
            raise ValueError("arguments are nested too deep")
        if isinstance(tree, (tuple, list)):
            return type(tree)(self._tree(each, depth + 1) for each in tree)
        if type(tree) is int and tree.bit_length() > 63:
            raise ValueError("an integer has more than 64 bits")
        if type(tree) is not dict:
            return tree
        ((kind, part),) = tree.items()
        if kind == "value":
            return self._values[part]
        if kind == "wrapped":
            return Wrapped(self._values[part[0]], _typed(part[1], bool))
        if kind == "outer":
            return self._outer(part)
        if kind == "slice":
            return slice(*(self._tree(each, depth + 1) for each in part))
        if kind == "dict":
            return {key: self._tree(each, depth + 1) for key, each in part}
        if kind == "object":
            return OBJECTS[part[0]][0](*[self._tree(each, depth + 1) for each in part[1]])
        return _KINDS[kind](part)


def _dtype(name: Any) -> Any:
    dtype = dtype_by_name(_typed(name, str))
    if dtype.hasobject or dtype.names is not None or dtype.kind in "SUMm":
        raise ValueError(f"it has arrays of dtype {name[:40]!r}")
    return dtype


def _function(name: Any) -> Any:
    function = functions().get(_typed(name, str))
    if function is None:
        raise ValueError(f"it calls {name[:40]!r}, which a plan may not call or this version does not have")
    return function


_KINDS = {
    "ellipsis": lambda part: Ellipsis,
    "dtype": _dtype,
    "type": lambda part: _dtype(part).type,
    "function": _function,
}


def _typed(each: Any, kind: Any) -> Any:
    if type(each) is not kind and not (kind is Tensor and isinstance(each, Tensor)):
        raise ValueError(f"a part is of the class {type(each).__name__} and should be of {kind.__name__}")
    return each


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = tuple(_typed(each, int) for each in shape)
    if any(each < 0 for each in sizes) or len(sizes) > 32:
        raise ValueError(f"{str(sizes)[:60]} is no shape")
    return sizes


def _integers(tree: Any) -> list[int]:
    if isinstance(tree, (tuple, list)):
        return [number for each in tree for number in _integers(each)]
    if isinstance(tree, dict):
        return _integers(list(tree.values()))
    if isinstance(tree, slice):
        return []
    if isinstance(tree, np.ndarray) and tree.dtype.kind in "iu" and tree.size:
        return [int(tree.max()), int(tree.min())]
    return [int(tree)] if isinstance(tree, (int, np.integer)) else []


def _check_order(
    statements: list[Statement], half: int, arrays: dict[int, Outer], results: Any, backwards: list[Backward]
) -> None:
    """Raise unless each value is there when it is used.

    Raises:
        ValueError: it is not.
    """
    cuts = [0, half, *[each.start for each in backwards[1:]], len(statements)]
    if (
        cuts != sorted(cuts)
        or (backwards and backwards[0].start != half)
        or (not backwards and half != len(statements))
    ):
        raise ValueError("its parts are not in order")
    outside = {
        storage
        for each in statements
        for value in each.values()
        if value.number in arrays
        for storage in value.storages
    }
    if any(each.target is not None and each.target.storages & outside for each in statements):
        raise ValueError("it writes to an argument")
    known = _followed(statements[:half], set(arrays))
    _check_known(results, known)
    for place, each in enumerate(backwards):
        begun = known | {value.number for value in each.given}
        _check_known(each.gradients, _followed(statements[cuts[place + 1] : cuts[place + 2]], begun))


def _followed(statements: list[Statement], known: set[int]) -> set[int]:
    for statement in statements:
        _check_known(list(statement.values()), known)
        if statement.result is not None:
            known.add(statement.result.number)
    return known


def _check_known(tree: Any, known: set[int]) -> None:
    for value in values_in(tree):
        if value.number not in known:
            raise ValueError(f"value {value.number} is used before it is made")
