"""``looped``: chains of arithmetic as one compiled loop each, for ``compile(..., fast_math=True)``, by the package numba.

A loop reads each operand once and writes one result, so it moves less memory than NumPy's calls, and is one call instead of
many. The compiler may contract and reorder operations, so roundings differ; NaN and infinities do not. Transcendental functions
are left to NumPy, whose vector code for them is faster.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from .into import cast
from .values import Kind, Statement, Storage, Value

_LEAVES = 28  # operands of a loop; NumPy takes 32 arrays
_OPERATIONS = 128  # of a loop; a long one takes seconds to compile
_LEAST, _LARGE = 4, 1 << 14  # operations of a loop on small arrays; bytes from which two are enough
FLAGS = {"contract", "reassoc", "arcp", "nsz"}  # LLVM's names of what it may do
_DTYPES = (np.dtype("float32"), np.dtype("float64"), np.dtype("bool"))
SYMBOLS: dict[Any, str] = {
    np.add: "{} + {}",
    np.subtract: "{} - {}",
    np.multiply: "{} * {}",
    np.true_divide: "{} / {}",
    np.negative: "-{}",
    np.positive: "{}",
    np.absolute: "abs({})",
    np.square: "{0} * {0}",
    np.reciprocal: "one / {}",
    np.sqrt: "sqrt({})",
    np.maximum: "{0} if {0} >= {1} or {0} != {0} else {1}",
    np.minimum: "{0} if {0} <= {1} or {0} != {0} else {1}",
    cast: "{}",
}
_COMPARISONS: dict[Any, str] = {
    np.less: "{} < {}",
    np.less_equal: "{} <= {}",
    np.greater: "{} > {}",
    np.greater_equal: "{} >= {}",
    np.equal: "{} == {}",
    np.not_equal: "{} != {}",
}


@dataclass(slots=True, eq=False)
class Loop(Statement):
    """A call of a compiled loop.

    Attributes:
        names: names of the operations in it.
    """

    names: tuple[str, ...] = ()

    def overwritable(self, value: Value) -> Iterator[Value]:
        """Return no value: where a result lies in an operand's memory, the loop takes one element after the other."""
        return iter(())


@cache
def can_loop() -> bool:
    """Return whether loops can be compiled; if not, warn, once."""
    if importlib.util.find_spec("numba") is not None:
        return True
    warnings.warn(
        "fast_math=True has no effect, as the package numba is not installed: pip install numba",
        stacklevel=3,
    )
    return False


def looped(
    statements: Sequence[Statement], cuts: Sequence[int], kept: set[Storage]
) -> tuple[list[Statement], list[int]]:
    """Return the program with its chains of arithmetic as loops, and where its parts begin now.

    Args:
        statements: the program.
        cuts: where its parts begin, and where the last ends.
        kept: storages that others may keep, or that the program returns.
    """
    users: dict[Storage, set[int]] = {storage: {-1} for storage in kept}  # -1 stands for those outside
    for place, statement in enumerate(statements):
        for storage in statement.storages():
            users.setdefault(storage, set()).add(place)
    chains: dict[int, _Chain] = {}  # by the place of the last operation
    inside: set[int] = set()
    for start, stop in pairwise(cuts):
        part = _Part(statements, users, start)
        for place in reversed(range(start, stop)):
            if place not in inside and _known(statements[place]):
                chain = part.chain(place)
                if chain.pays():
                    chains[place] = chain
                    inside |= chain.places
    done: list[Statement] = []
    ends = {0: 0}
    for place, statement in enumerate(statements):
        ends.setdefault(place, len(done))
        if place in chains:
            done.append(chains[place].loop())
        elif place not in inside:
            done.append(statement)
    ends[len(statements)] = len(done)
    return done, [ends[cut] for cut in cuts]


class _Chain:
    """Operations whose last result is the only one that others need.

    Args:
        place: of the last operation.
        operation: the last one.
    """

    def __init__(self, place: int, operation: Statement) -> None:
        self.places = {place}
        self.operations = [operation]
        self.leaves = {value.number: value for value in operation.values()}

    def add(self, place: int, operation: Statement) -> bool:
        """Add the operation that makes an operand; return whether there are not too many."""
        leaves = {**self.leaves, **{value.number: value for value in operation.values()}}
        del leaves[_result(operation).number]
        if len(leaves) > _LEAVES or len(self.operations) == _OPERATIONS:
            return False
        self.places.add(place)
        self.operations.insert(0, operation)
        self.leaves = leaves
        return True

    def pays(self) -> bool:
        """Return whether one loop is faster than NumPy's calls."""
        large = _result(self.operations[-1]).nbytes >= _LARGE
        return bool(self.leaves) and len(self.operations) >= (2 if large else _LEAST)

    def loop(self) -> Loop:
        """Return the statement that runs them."""
        leaves = list(self.leaves.values())
        result = _result(self.operations[-1])
        kernel = _compiled(_source(self.operations, leaves), tuple([each.dtype.name for each in [*leaves, result]]))
        names = tuple([getattr(each.function, "__name__", "") for each in self.operations])
        return Loop(Kind.CALL, kernel, tuple(leaves), result=result, into=True, names=names)


class _Part:
    """A part of a program, in which chains are searched from their ends.

    Args:
        statements: the program.
        users: places of the statements that use a storage.
        start: the first statement of the part.
    """

    def __init__(self, statements: Sequence[Statement], users: dict[Storage, set[int]], start: int) -> None:
        self._statements, self._users, self._start = statements, users, start
        self._makers = {each.result.number: place for place, each in enumerate(statements) if each.result is not None}

    def chain(self, last: int) -> _Chain:
        """Return the chain that ends at a place."""
        chain = _Chain(last, self._statements[last])
        todo = [-place for place in self._operands(last)]  # the last operand first: all that use it have been seen
        heapify(todo)
        seen = set(todo)
        while todo:
            place = -heappop(todo)
            if self._joins(place, chain, last) and chain.add(place, self._statements[place]):
                for each in self._operands(place):
                    if -each not in seen:
                        seen.add(-each)
                        heappush(todo, -each)
        return chain

    def _operands(self, place: int) -> list[int]:
        return [
            self._makers[value.number] for value in self._statements[place].values() if value.number in self._makers
        ]

    def _joins(self, place: int, chain: _Chain, last: int) -> bool:
        """Return whether only the chain uses a result of the same shape, and its operands are the same at the chain's end."""
        statement = self._statements[place]
        if place < self._start or not _known(statement):
            return False
        value = _result(statement)
        if value.shape != _result(self._statements[last]).shape:
            return False
        if any(self._users[storage] - {place} - chain.places for storage in value.storages):
            return False
        read = {storage for each in statement.values() for storage in each.storages}
        between = self._statements[place + 1 : last]
        return not any(
            each.kind is Kind.EFFECT
            or each.changes
            or (each.target is not None and not each.target.storages.isdisjoint(read))
            for each in between
        )


def _known(statement: Statement) -> bool:
    function: Any = statement.function
    value = statement.result
    if statement.kind is not Kind.CALL or not statement.into or value is None or statement.kwargs:
        return False
    if function not in SYMBOLS and function not in _COMPARISONS:
        return False
    if len(statement.args) != (2 if function is cast else function.nin) or value.dtype not in _DTYPES:
        return False
    if function not in _COMPARISONS and function is not cast and value.dtype.kind != "f":
        return False  # of booleans, add is a logical or
    operands = statement.args[:1] if function is cast else statement.args
    values = [each for each in operands if type(each) is Value]
    # Then all other operands are numbers: no result has its shape from a constant.
    whole = any(each.shape == value.shape for each in values)
    return whole and all(each.dtype in _DTYPES if type(each) is Value else _is_number(each) for each in operands)


def _is_number(each: Any) -> bool:
    """Return whether a constant is a number, or an array of one number, as gradients of sums are."""
    if isinstance(each, (np.ndarray, np.generic)):
        return each.dtype in _DTYPES and each.size > 0 and (each.size == 1 or not any(each.strides))
    return type(each) in (bool, int, float)


def _result(statement: Statement) -> Value:
    assert statement.result is not None
    return statement.result


def _source(operations: Sequence[Statement], leaves: Sequence[Value]) -> str:
    """Return the source of a function of one element of each operand."""
    names = {value.number: f"x{place}" for place, value in enumerate(leaves)}
    lines = [f"def chain({', '.join(names.values())}):"]
    for place, each in enumerate(operations):
        value = _result(each)
        operands = each.args[:1] if each.function is cast else each.args
        comparison = each.function in _COMPARISONS
        dtype = _compared(operands) if comparison else value.dtype
        form = (_COMPARISONS if comparison else SYMBOLS)[each.function]
        if form.startswith("one"):
            form = form.replace("one", _converted("1.0", dtype), 1)
        given = [_converted(names[each.number] if type(each) is Value else _number(each), dtype) for each in operands]
        for index, text in enumerate(given):
            lines.append(f"    a{place}_{index} = {text}")
        names[value.number] = f"y{place}"
        lines.append(f"    y{place} = {form.format(*[f'a{place}_{index}' for index in range(len(given))])}")
    lines.append(f"    return {names[_result(operations[-1]).number]}")
    return "\n".join(lines)


def _compared(operands: Sequence[Any]) -> Any:
    """Return the dtype in which NumPy compares operands."""
    return np.result_type(*[each.dtype if hasattr(each, "dtype") else each for each in operands])


def _number(each: Any) -> str:
    return repr(float(each.flat[0] if isinstance(each, np.ndarray) else each))  # inf and nan are names


def _converted(text: str, dtype: Any) -> str:
    return f"{dtype.name if dtype.kind == 'f' else 'boolean'}({text})"


@cache
def _compiled(source: str, dtypes: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function of arrays that are broadcast, which takes ``out=``.

    Args:
        source: of the function of their elements.
        dtypes: of the operands and the result.
    """
    import numba

    names: dict[str, Any] = {"float32": np.float32, "float64": np.float64, "boolean": bool, "sqrt": np.sqrt}
    names.update(inf=np.inf, nan=np.nan)
    exec(source, names)  # made of names of operations and numbers
    *given, result = [getattr(numba, "boolean" if each == "bool" else each) for each in dtypes]
    # The ufunc of NumPy's that numba makes: numba's own around it is slower, and NumPy's warnings name its module.
    vectorize: Any = numba.vectorize
    kernel: Callable[..., Any] = vectorize([result(*given)], fastmath=FLAGS)(names["chain"]).ufunc
    return kernel
