"""``Tracer``: writes the statements of a program while functions run on stand-ins."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.extend import Array, Tensor, memory_address
from .elements import shape_by_elements
from .errors import Unrecordable
from .into import FRESH, reshaped, strided
from .stand_in import StandIn
from .values import Kind, Statement, Storage, Value, mapped, values_in

# A view by one of these does not depend on the elements, so it can be made once for memory that stays.
_VIEWS = frozenset(
    [operator.getitem, np.transpose, np.broadcast_to, np.moveaxis, np.expand_dims, np.swapaxes, np.squeeze, np.reshape]
    + [np.flip, reshaped, strided]
    + [
        getattr(np.ndarray, name)
        for name in ("reshape", "transpose", "swapaxes", "squeeze", "view", "ravel", "diagonal")
    ]
)


_MOST = 10_000  # statements of one operation: more of them gain nothing over the operation itself


class Tracer:
    """The program so far.

    Attributes:
        statements: in order.
        keep: whether nodes keep what they saved, because a backward pass may run again.
        closed: whether the recording is over.
        outer: storages that do not belong to the program, which no statement may write to.
        given: the numbers of values that are arrays of tensors from outside.
        changed: arrays from outside that the program has written to.
        limit: the number of statements at which an operation, or a node, is too long.
        dynamic: the name of a call whose result's shape may depend on elements, or ``None``.
        noted: tensors that calls of an operation change, as they are in the arguments of statements.
        argument: returns that form of a tensor over a stand-in.
        asked: stand-ins whose truth was asked for; ``None`` where that is refused.
    """

    def __init__(self, argument: Callable[[Tensor], Any]) -> None:
        self.argument = argument
        self.noted: list[Any] = []
        self.asked: list[StandIn] | None = None
        self.dynamic: str | None = None
        self.statements: list[Statement] = []
        self.outer: set[Storage] = set()
        self.keep = self.closed = False
        self.limit = _MOST
        self.given: set[int] = set()
        self.changed: list[Array] = []
        self._numbers = 0

    def mark(self) -> int:
        """Return the number of statements, for ``back``. What follows may have ``_MOST`` statements, up to the next mark."""
        self.limit = len(self.statements) + _MOST
        return len(self.statements)

    def back(self, mark: int) -> None:
        """Forget the statements since ``mark``."""
        del self.statements[mark:]

    def value(self, example: Array | None = None, storages: frozenset[Storage] | None = None) -> Value:
        """Return a new value.

        Args:
            example: its array; ``None`` for what is none.
            storages: the memory that it is part of; memory of its own by default.
        """
        self._numbers += 1
        return Value(self._numbers, frozenset([self._numbers]) if storages is None else storages, example)

    def outside(self, array: Array) -> StandIn:
        """Return a stand-in for an array that does not belong to the program."""
        value = self.value(array)
        self.outer |= value.storages
        return StandIn(self, value, array)

    def examples(self, tree: Any) -> Any:
        """Return arguments with examples in the places of stand-ins."""
        return mapped(tree, lambda each: each._example if type(each) is StandIn else each)

    def call(self, function: Callable[..., Any], args: Any, kwargs: Any = None, into: bool = False) -> StandIn:
        """Record a call without effects, and return its result.

        Args:
            function: of NumPy.
            args, kwargs: its arguments.
            into: whether it takes the memory of its result as ``out``.

        Raises:
            Unrecordable: the result is not an array.
        """
        if self.closed:
            raise RuntimeError("a stand-in has outlived its recording; please report this")
        kwargs = kwargs or {}
        result = function(*self.examples(args), **self.examples(kwargs))
        if isinstance(result, np.generic):
            result = np.asarray(result)
        if type(result) is not np.ndarray:
            raise Unrecordable(f"{getattr(function, '__name__', function)}() returns {type(result).__name__}, no array")
        if (same := self._same(result, args)) is not None:
            return same
        base = self._base_of(result, args, kwargs)
        value = self.value(result, None if base is None else base._value.storages)
        kind = Kind.VIEW if base is not None and _is_view(function) else Kind.CALL
        given = self._values(args), self._values(kwargs)
        checked = shape_by_elements(function, args)
        if checked:
            self.dynamic = f"{getattr(function, '__name__', function)}()"
        self._add(Statement(kind, function, *given, result=value, into=into and base is None, checked=checked))
        return StandIn(self, value, result, None if base is None else base.root)

    def write(self, function: Callable[..., Any], args: Any, kwargs: Any, out: Any) -> StandIn:
        """Record a call that writes its result to ``out``, and return that.

        Args:
            function: of NumPy, with a parameter ``out``.
            args, kwargs: its other arguments.
            out: a stand-in of memory that belongs to the program.

        Raises:
            Unrecordable: ``out`` is something else.
        """
        target = self._writable(out)
        function(*self.examples(args), out=target._example, **self.examples(kwargs))
        given = self._values(args), {**self._values(kwargs), "out": target._value}
        self._add(Statement(Kind.WRITE, function, *given, target=target._value))
        return target

    def change(self, function: Callable[..., Any], args: Any, kwargs: Any, changed: Any) -> None:
        """Record a call that writes to one of its arguments and returns nothing.

        Args:
            function: of NumPy.
            args, kwargs: its arguments.
            changed: the argument that it writes to: a stand-in of memory that belongs to the program.

        Raises:
            Unrecordable: ``changed`` is something else.
        """
        target = self._writable(changed)
        function(*self.examples(args), **self.examples(kwargs))
        given = self._values(args), self._values(kwargs)
        self._add(Statement(Kind.WRITE, function, *given, target=target._value))

    def set_item(self, out: StandIn, index: Any, value: Any) -> None:
        """Record ``out[index] = value``. Arguments and errors: those of ``change``."""
        if not self._changes_nothing(out, index, value):
            self.change(operator.setitem, (out, index, value), {}, out)

    def _changes_nothing(self, out: StandIn, index: Any, value: Any) -> bool:
        """Return whether it writes no element, or each to its own place, as the end of ``out[index] += 1`` does."""
        part = out._example[self.examples(index)]
        if type(value) is not StandIn or part.size == 0:
            return bool(part.size == 0)
        given = value._example
        return memory_address(part) == memory_address(given) and _layout(part) == _layout(given)

    def fresh(self, function: Callable[..., Any], args: Any, kwargs: Any) -> StandIn:
        """Record that new memory is made, and return it.

        Args:
            function: one of ``FRESH``.
            args, kwargs: its arguments.
        """
        result = function(*self.examples(args), **self.examples(kwargs))
        plain = FRESH[function]
        fill = (kwargs["fill_value"] if "fill_value" in kwargs else args[1],) if plain is np.full else ()
        if not result.flags.c_contiguous or (fill and not np.isscalar(fill[0])):
            return self.call(function, args, kwargs)
        value = self.value(result)
        self._add(Statement(Kind.CALL, plain, (result.shape, *fill, result.dtype), result=value, into=True))
        return StandIn(self, value, result)

    def call_many(
        self,
        function: Callable[..., Any],
        args: Any,
        results: Sequence[Array | None],
        uses: frozenset[Storage] = frozenset(),
    ) -> list[StandIn | None]:
        """Record a call without effects that returns several arrays.

        Args:
            function: what is called.
            args: its arguments.
            results: what it returned for the examples.
            uses: storages that it needs beside those of its arguments.
        """
        held = uses.union(storage for value in values_in(self._values(args)) for storage in value.storages)
        made = self.value(storages=frozenset())
        self.effect(function, args, made, uses)
        found: list[StandIn | None] = []
        for place, result in enumerate(results):
            if result is None:
                found.append(None)
                continue
            value = self.value(result)
            self.outer |= value.storages  # others may hold it, so it is not written to
            value.storages |= held
            self.effect(array_in, (made, place), value, held)
            found.append(StandIn(self, value, result))
        return found

    def guard(self, condition: Callable[..., Any], args: Any) -> None:
        """Record a condition of elements, which is checked before a replay begins.

        Args:
            condition: a function without effects.
            args: its arguments; arrays of integers from outside, which the program has not changed before.

        Raises:
            Unrecordable: an argument is another array, or the condition is not satisfied.
        """
        for each in args:
            if type(each) is StandIn and not self._is_given(each):
                raise Unrecordable("it looks at elements that the call computes")
        if not condition(*self.examples(args)):
            raise Unrecordable("it looks at elements, and takes a way that is not recorded")
        self.effect(condition_of, (condition, *args))

    def truth(self, stand_in: StandIn) -> bool:
        """Return the truth of the recorded example, if that may be asked for.

        Raises:
            Unrecordable: it may not.
        """
        if self.asked is None:
            raise Unrecordable("bool() looks at the elements of an array")
        self.asked.append(stand_in)
        return bool(stand_in._example)

    def outside_change(self, function: Callable[..., Any], args: Any) -> None:
        """Record a call that changes a tensor from outside.

        Args:
            function: what is called: it changes its first argument, and returns nothing.
            args: its arguments; the first is a tensor over a stand-in.
        """
        changed = self.argument(args[0])
        self.noted.append(changed)
        self.effect(function, (changed, *args[1:]), changes=True)

    def _is_given(self, stand_in: StandIn) -> bool:
        example = stand_in._example
        given = stand_in._value.number in self.given and example.dtype.kind in "iu"
        return given and not any(np.may_share_memory(example, each) for each in self.changed)

    def effect(
        self,
        function: Callable[..., Any],
        args: Any,
        result: Value | None = None,
        uses: frozenset[Storage] = frozenset(),
        escapes: bool = False,
        changes: bool = False,
        checked: bool = False,
        moves: bool = False,
        draws: bool = False,
        leaves: bool = False,
    ) -> None:
        """Record a call that is made in each replay as it is.

        Args:
            function: what is called.
            args: its arguments.
            result: the value of what it returns.
            uses: storages that it needs beside those of its arguments.
            escapes: whether others keep the arguments.
            changes: whether it changes something outside.
            checked: whether a replay checks the shape of the result.
            moves: whether it may be made later.
            draws: whether all that it changes is the state of a generator.
            leaves: whether it sends a message.
        """
        statement = Statement(Kind.EFFECT, function, self._values(args), result=result, uses=uses)
        statement.escapes, statement.changes, statement.checked, statement.moves = escapes, changes, checked, moves
        statement.draws, statement.leaves = draws, leaves
        self.statements.append(statement)

    def _add(self, statement: Statement) -> None:
        self.statements.append(statement)
        if len(self.statements) > self.limit:
            raise Unrecordable(f"it takes more than {_MOST:,} calls")

    def _writable(self, out: Any) -> StandIn:
        if type(out) is not StandIn or out._value.storages & self.outer:
            raise Unrecordable("an array that does not belong to the recording is written to")
        return out

    def _same(self, result: Array, args: Any) -> StandIn | None:
        return next((each for each in args if type(each) is StandIn and each._example is result), None)

    def _base_of(self, result: Array, args: Any, kwargs: Any) -> StandIn | None:
        bases: list[StandIn] = []
        mapped((args, kwargs), lambda each: bases.append(each) if type(each) is StandIn else None)
        shared = [each for each in bases if np.may_share_memory(each._example, result)]
        if len({id(each.root) for each in shared}) > 1:
            raise Unrecordable("a result shares memory with several arrays")
        return shared[0] if shared else None

    def _values(self, tree: Any) -> Any:
        return mapped(tree, _value)


def condition_of(condition: Callable[..., Any], *args: Any) -> None:
    """Stand in the program for a condition of its replays."""


def array_in(results: Sequence[Any], place: int) -> Any:
    """Return one of several arrays, or numbers of NumPy."""
    return np.asarray(results[place])


def _value(each: Any) -> Any:
    if type(each) is StandIn:
        return each._value
    if _hides_stand_in(each):
        raise Unrecordable(f"an argument of the class {type(each).__name__} holds an array")
    # Those who made the array may change it later on.
    return each.copy() if type(each) is np.ndarray and each.flags.writeable and each.size else each


def _hides_stand_in(each: Any) -> bool:
    slots = getattr(type(each), "__slots__", ())
    held = [getattr(each, name, None) for name in ((slots,) if isinstance(slots, str) else slots)]
    held += getattr(each, "__dict__", {}).values() if not isinstance(each, (type, Tensor)) else ()
    return any(type(part) is StandIn for part in held)


def _layout(array: Array) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.strides


def _is_view(function: Any) -> bool:
    return type(function) is operator.attrgetter or function in _VIEWS
