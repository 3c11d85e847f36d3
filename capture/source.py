"""``Source``: the program as the source of a Python function, one line a statement.

Python runs a line with one call faster than any loop over a list of calls. Its names are those of values (``v1``), of
functions and constants (``c1``), and of the tensors of the call (``t1``). Values in memory that stays are global names.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.extend import Array, Node, Tensor, in_row_buffers, row_buffer, within
from .block_lines import block_lines, over
from .blocks import Blocks
from .deferring import deferred
from .fusion import fused
from .hastening import hastened
from .into import FILLS
from .limits import LIMITS
from .loops import looped
from .memory import escaping, plan_memory
from .recomputing import recomputed
from .recorded import Recorded
from .sizes import refuse_shape
from .step_loops import with_step_loops
from .tracer import condition_of
from .values import Backward, Kind, Outer, Statement, Storage, Value, Wrapped, mapped, values_in

# The edge of a tensor that requires grad in a replay: of an operation's input, whose gradient is taken from the
# operation's node, and of a result, before it gets the node of the replay.
PENDING = (Node(), 0)
_NAMED_OUT = (np.maximum, np.minimum)  # NumPy wants out= by its name
_FILLED = (np.empty, np.zeros, np.ones, np.full)
_WITH_NUMBERS = (
    *(np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum),
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
)
_LITERALS = (int, bool, type(None), str)
_TOGETHER = 64  # statements, behind which the names of others are dropped: a view takes 200 bytes


class Source:
    """A program in its final form.

    Args:
        statements: the program.
        half: the first statement of its backward half; behind the last if there is none.
        arrays: by the number of a value, the tensor of the call (or found by it) whose array it is.
        results: structure of results: tuples, lists and dicts of values (``Wrapped``), tensors (``Outer``) and constants.
        found: tensors that the program uses and that are no arguments.
        given: the number of tensors among the arguments.
        backwards: the backward passes that the backward half has.
        inputs: tensors whose gradients these return, ``None`` where there is none.
        fast: whether chains of arithmetic become compiled loops, with other roundings.
        checked: whether results are to have the shapes that values say: the program is from a file.
        live: values that earlier parts of the program have made: the function gets them by number, as its last argument.
        kept: memory that later parts may use.

    Attributes:
        statements: the program, with chains of element-wise calls as one statement each.
        text: the source; a function ``replay(t0, t1, ...)``.
        constants: by name.
        sizes: the buffers' sizes in bytes.
        passing: the most bytes at one time of large results, which are freed at their last use.
        views: lines that are run once for each set of buffers.
        buffers: by name, the number of a buffer and the value that lies in it.
        condition: the source of a function of the same arguments: whether a replay can begin.
        halves: whether the function returns its backward passes beside the result, by their masks.
        renamed: names of values in the place of the usual ones.
        calls: the number of calls that a replay makes; those of blocks count once.
        recorded: the program as it was recorded.
        passes: the statements of each backward pass, before chains are fused.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        half: int,
        arrays: dict[int, Outer],
        results: Any,
        found: Sequence[Tensor],
        given: int,
        backwards: Sequence[Backward] = (),
        inputs: Sequence[Tensor] = (),
        fast: bool = False,
        checked: bool = False,
        live: Sequence[Value] | None = None,
        kept: Iterable[Storage] = (),
    ) -> None:
        self._checked = checked
        self._arrays, self._found, self._given = arrays, found, given
        self._results, self._backwards = results, backwards
        self._gradients = [_in_order(each, inputs) for each in backwards]
        self.recorded = Recorded(statements, half, arrays, results, backwards, self._gradients)
        self._live = live
        self._kept = escaping(statements, list(values_in((results, self._gradients)))).union(kept)
        cuts = [0, half, *[each.start for each in backwards[1:]], len(statements)]
        statements, cuts = recomputed(statements, cuts, self._kept, live or ())
        self.passes: Sequence[Sequence[Statement]] = [statements[start:stop] for start, stop in pairwise(cuts[1:])]
        statements = hastened(deferred(statements, cuts, self._kept), cuts)
        if fast:
            statements, cuts = looped(with_step_loops(statements), cuts, self._kept)
        self.statements, self._cuts = statements, _ = fused(statements, cuts, self._kept)
        self._half = half = self._cuts[1]
        self.constants: dict[str, Any] = {"Tensor": Tensor, "asarray": np.asarray, "empty": np.empty}
        self.views: list[str] = []
        self.buffers: dict[str, tuple[int, Value]] = {}
        self._memory = plan_memory(statements, half, self._kept)
        self.sizes, self.passing = self._memory.sizes, self._memory.passing
        self._static: set[int] = set()  # values that are the same object in each replay
        self._named: dict[int, str] = {}
        self._made: dict[int, str] = {}  # tensors that are in the results more than once
        self.halves = bool(backwards)
        self._together: dict[int, dict[int, Value]] = {}  # small values whose names are dropped behind a statement
        self._ending = self._find_ends({value.number for value in values_in((results, self._gradients))})
        self._scratch: list[int] = []  # the buffers for blocks
        self.renamed: dict[int, str] = {}
        self.calls = 0
        self._conditions: list[Statement] = []
        self.text = self._write()
        self.condition = self._condition()
        self._ending, self._together, self._static, self._conditions = {}, {}, set(), []  # for writing only

    def _write(self) -> str:
        used = {value.number for value in values_in((self._results, self._gradients))}
        for statement in self.statements:
            used.update(value.number for value in statement.values())
        given = [f"t{place}" for place in range(self._given)] + ["live"] * (self._live is not None)
        lines = [f"def replay({', '.join(given)}):"]
        lines += [f"    {self.name(value)} = live[{value.number}]" for value in self._live or ()]
        for number, outer in self._arrays.items():
            if number in used:
                lines.append(f"    v{number} = {self._tensor(outer)}._array")
        lines += [f"    {line}" for line in self._part(0, self._half)]
        lines += [f"    {line}" for line in self._made_before()]
        results = self._expression(self._results)
        for place, backward in enumerate(self._backwards):
            lines.append(f"    def backward{place}({', '.join(map(self.name, backward.given))}):")
            part = self._part(self._cuts[place + 1], self._cuts[place + 2])
            lines += [f"        {line}" for line in part]
            lines.append(f"        return {self.gradients_line(place)}")
        if self.halves:
            passes = [f"{each.mask}: backward{place}" for place, each in enumerate(self._backwards)]
            results = f"{results}, {{{', '.join(passes)}}}"
        return "\n".join([*lines, f"    return {results}", ""])

    def _condition(self) -> str:
        """Return the source of a function ``(t0, t1, ...)`` that tells whether a replay can begin."""
        parts = ["True"]
        for condition, *args in (each.args for each in self._conditions):
            if condition is not within:
                raise ValueError("a plan has a condition that no operation has")
            given = [
                f"{self._tensor(self._arrays[each.number])}._array" if type(each) is Value else self._expression(each)
                for each in args
            ]
            parts.append(f"{self.constant(condition)}({', '.join(given)})")
        return f"lambda {', '.join(f't{place}' for place in range(self._given))}: {' and '.join(parts)}"

    def _part(self, start: int, stop: int) -> Iterator[str]:
        """Yield the lines of some statements."""
        for index in range(start, stop):
            yield from self._lines(index)
            yield from self._dropping(self._together.get(index, {}).values())

    def _lines(self, index: int) -> list[str]:
        """Return the lines of a statement: its call, and that large arrays are not needed any more."""
        statement = self.statements[index]
        if statement.function is condition_of:
            self._conditions.append(statement)
            return []
        if self._once(statement):
            return []
        if isinstance(statement, Blocks):
            self.calls += len(statement.parts)
            return [*block_lines(self, statement), *self._drop(index)]
        if statement.function in _FILLED and statement.into and statement.result and self.placed(statement.result):
            return self._filled(statement.result, statement)
        self.calls += 1
        return [self._line(statement), *self._check(statement), *self._drop(index)]

    def _check(self, statement: Statement, always: bool = False) -> list[str]:
        """Return the line that checks the shape of a result that is made anew; or of each, if ``always``."""
        value = statement.result
        placed = value is not None and value.number in self._memory.places
        checked = self._checked or statement.checked
        if not checked or value is None or value.shape is None or (placed and not always):
            return []
        name, shape = self.name(value), tuple(value.shape)
        return [f"if {name}.shape != {shape}: {self.constant(refuse_shape)}({name}, {shape})"]

    def _filled(self, value: Value, statement: Statement) -> list[str]:
        """Return the line that fills memory that stays in the place of new memory; none if that has no elements yet."""
        if statement.function is np.empty:
            return []
        self.calls += 1
        fill = statement.args[1] if statement.function is np.full else FILLS[statement.function]
        return [f"{self.name(value)}.fill({self._expression(fill)})"]

    def _drop(self, index: int) -> list[str]:
        """Return the line that drops what is not needed behind a statement: large arrays, and what holds arrays."""
        return self._dropping(self._ending.get(index, ()))

    def _dropping(self, values: Iterable[Value]) -> list[str]:
        dropped = [self.name(value) for value in values if value.number not in self._static]
        return [f"{' = '.join(dropped)} = None"] if dropped else []

    def _find_ends(self, returned: set[int]) -> dict[int, list[Value]]:
        """Return the values whose names are not used behind a statement, by its index.

        Their memory may have other names. Names that the backward half takes from the first are kept, as that may run again.

        Args:
            returned: numbers of values that are returned.
        """
        ends = {value.number: index for index, each in enumerate(self.statements) for value in each.values()}
        found: dict[int, list[Value]] = {}
        for index, statement in enumerate(self.statements):
            for value in [*statement.made(), statement.result]:
                if value is None or value.number in returned:
                    continue
                end = ends.get(value.number, index)
                if (index < self._half) != (end < self._half):
                    continue
                small = value.shape is not None and value.nbytes < LIMITS.smaller
                if small and self._memory.anew.isdisjoint(value.storages):
                    late = end + _TOGETHER - 1 - end % _TOGETHER
                    if bisect_right(self._cuts, end) == bisect_right(self._cuts, late):
                        self._together.setdefault(late, {})[value.number] = value
                elif value not in found.setdefault(end, []):
                    found[end].append(value)
        return found

    def _once(self, statement: Statement) -> bool:
        """Take a view of memory that stays out of the replay; return whether it is one."""
        value = statement.result
        if statement.kind is not Kind.VIEW or value is None:
            return False
        if any(each.number not in self._static for each in statement.values()):
            return False
        self._static.add(value.number)
        self.views.append(f"{self.name(value)} = {self.call(statement)}")
        self.views += self._check(statement)
        return True

    def _line(self, statement: Statement) -> str:
        value = statement.result
        if statement.function is operator.setitem:
            target, index, given = (self._expression(each) for each in statement.args)
            return f"{target}[{index}] = {given}" if not isinstance(statement.args[1], slice) else self.call(statement)
        if value is not None and self.placed(value):
            return self.call(statement, self.name(value))
        if value is not None and (operand := self.over(value)) is not None:
            return f"{self.name(value)} = {self.call(statement, over(self, operand, value))}"
        return self._plain_line(statement)

    def plain_lines(self, statement: Statement) -> list[str]:
        """Return the lines of a statement of the recorded program, with new memory for its result."""
        return [self._plain_line(statement), *self._check(statement, always=True)]

    def _plain_line(self, statement: Statement) -> str:
        call, value = self.call(statement), statement.result
        if value is None:
            return call
        if value.shape == () and statement.kind is Kind.CALL:
            call = f"asarray({call})"
        return f"{self.name(value)} = {call}"

    def gradients_line(self, place: int) -> str:
        """Return what a backward pass returns."""
        return self._expression(tuple(self._gradients[place]))

    def call(self, statement: Statement, out: str = "") -> str:
        """Return the call of a statement, which writes to ``out`` if that is given."""
        function = statement.function
        if type(function) is operator.attrgetter:
            return f"{self._expression(statement.args[0])}.{function.__reduce__()[1][0]}"
        parts = [self._expression(each) for each in with_arrays(statement)]
        named = [f"{name}={self._expression(each)}" for name, each in statement.kwargs.items()]
        if out and isinstance(function, np.ufunc) and len(parts) == function.nin and function not in _NAMED_OUT:
            parts.append(out)
        elif out:
            named.append(f"out={out}")
        called, size = self.constant(function), _row_buffer(statement)
        if size:
            called, parts = self.constant(in_row_buffers), [str(size), called, *parts]
        return f"{called}({', '.join([*parts, *named])})"

    # -- memory

    def placed(self, value: Value) -> bool:
        """Return whether a result lies in a buffer, which has its name from now on."""
        if value.number not in self._memory.places:
            return False
        self._static.add(value.number)
        self.buffers[self.name(value)] = self._memory.places[value.number], value
        return True

    def buffer_of(self, value: Value) -> int | None:
        """Return the number of the buffer that a value lies in; ``None`` if it is made anew in each replay."""
        return self._memory.places.get(value.number)

    def lane_of(self, value: Value) -> int | None:
        """Return the lane of a large result in a picture; ``None`` of any other."""
        return self._memory.lanes.get(value.number)

    def over(self, value: Value) -> Value | None:
        """Return the operand in whose memory a large result is written; ``None`` if it has its own."""
        return self._memory.over.get(value.number)

    def is_static(self, value: Value) -> bool:
        """Return whether a value is the same object in each replay."""
        return value.number in self._static

    def scratch(self, value: Value, slot: int, size: int) -> str:
        """Return the name of memory for a block of a value.

        Args:
            value: the block.
            slot: blocks with the same slot share memory.
            size: bytes.
        """
        while len(self._scratch) <= slot:
            self._scratch.append(len(self.sizes))
            self.sizes.append(0)
        place = self._scratch[slot]
        self.sizes[place] = max(self.sizes[place], size)
        name = f"x{value.number}"
        self.buffers[name] = place, value
        return name

    # -- names

    def name(self, value: Value) -> str:
        """Return the name of a value."""
        return self.renamed.get(value.number) or f"v{value.number}"

    def _tensor(self, outer: Outer) -> str:
        return self.constant(self._found[outer.place]) if outer.found else f"t{outer.place}"

    def constant(self, value: Any) -> str:
        """Return the name of a constant."""
        name = self._named.get(id(value))
        if name is None:
            name = self._named[id(value)] = f"c{len(self._named)}"
            self.constants[name] = value
        return name

    def _made_before(self) -> list[str]:
        """Return lines that make the tensors that are in the results more than once."""
        seen: set[int] = set()
        lines: list[str] = []

        def see(each: Any) -> Any:
            if type(each) is Wrapped and id(each) in seen and id(each) not in self._made:
                name = f"r{len(lines)}"
                lines.append(f"{name} = {self._expression(each)}")
                self._made[id(each)] = name
            seen.add(id(each))
            return each

        mapped(self._results, see)
        return lines

    def _expression(self, tree: Any) -> str:
        kind = type(tree)
        if kind is Value:
            return self.name(tree)
        if kind is Wrapped:
            if id(tree) in self._made:
                return self._made[id(tree)]
            more = f", True, {self.constant(PENDING)}" if tree.requires_grad else ""
            return f"Tensor({self.name(tree.value)}{more})"
        if kind is Outer:
            return self._tensor(tree)
        if kind in _LITERALS:
            return repr(tree)
        if kind is tuple:
            return f"({''.join(f'{self._expression(each)}, ' for each in tree)})"
        if kind is list:
            return f"[{', '.join(self._expression(each) for each in tree)}]"
        if kind is dict:
            return f"{{{', '.join(f'{self.constant(k)}: {self._expression(v)}' for k, v in tree.items())}}}"
        if kind is slice:
            return f"slice({', '.join(self._expression(each) for each in (tree.start, tree.stop, tree.step))})"
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return f"{self.constant(kind)}({', '.join(self._expression(each) for each in tree)})"
        return self.constant(tree)


def _row_buffer(statement: Statement) -> int:
    """Return the size of the buffers for arithmetic with a number for each row; 0: as usual."""
    shapes = [each.shape for each in statement.args if type(each) is Value and each.shape]
    if len(shapes) != 2 or not isinstance(statement.function, np.ufunc):
        return 0
    numbers, rows = sorted(shapes, key=lambda shape: shape[-1])
    return row_buffer(rows) if numbers[-1] == 1 else 0


def with_arrays(statement: Statement) -> tuple[Any, ...]:
    """Return the arguments of a call, with a number beside one array as an array of that dtype.

    NumPy would convert it in each call, which takes a microsecond.
    """
    args = statement.args
    if statement.function not in _WITH_NUMBERS or len(args) != 2:
        return args
    values = [each for each in args if type(each) is Value]
    numbers = [each for each in args if type(each) is float or (type(each) is int and abs(each) < 1 << 53)]
    if len(values) != 1 or len(numbers) != 1 or values[0].dtype not in (np.float32, np.float64):
        return args
    array = _array_of(repr(numbers[0]), values[0].dtype)
    return tuple([each if type(each) is Value else array for each in args])


@cache
def _array_of(number: str, dtype: Any) -> Array:
    with np.errstate(all="ignore"):
        array = np.array(float(number), dtype)
    array.flags.writeable = False
    return array


def _in_order(backward: Backward, inputs: Sequence[Tensor]) -> list[Any]:
    """Return the gradients of a pass in the order of ``inputs``."""
    found = {id(each): gradient for each, gradient in zip(backward.inputs, backward.gradients)}
    return [found.get(id(each)) for each in inputs]
