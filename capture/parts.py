"""``parts_of``: the parts of a program between its looks. Only the last changes something outside.

So a replay that sees a value for which there is no plan can be given up, and the call is made again, eagerly. What changes
something before a look (a gradient that arrives, the step of an optimizer, running statistics) is moved behind it, with what
follows from it. Random numbers may be drawn before: the generator gets its former state again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import nn, optim
from ..core.extend import Array, Tensor, accumulate_grad
from ..nn.extend import clip_norm, clip_values
from .errors import Unrecordable
from .found import Found
from .gradients import assign_gradient, clear_gradient, read_gradient
from .looks import look_at
from .mirrors import run_node
from .program import call_whole
from .trees import tensors_of
from .values import Kind, Outer, Statement, Storage, Value, outers_in, values_in

_DRAWN, _GRADIENTS = "the state of a generator", "gradients"
_CLIPPING = (clip_norm, clip_values)
_OF_GRADIENTS = (accumulate_grad, assign_gradient, clear_gradient, nn.Module.zero_grad, optim.Optimizer.zero_grad)


class Part:
    """A part of a program.

    Args:
        statements: in order; the last is a look, but in the last part.
        seen: what the look saw.
        results: what the last part returns.
        arrays: by the number of a value, the tensor whose array it is.
        found: tensors that the program uses and that are no arguments.
        tensors: the number of tensors among the arguments.
        fast: whether chains of arithmetic become compiled loops.

    Attributes:
        made: by number, the values that it makes.
        live: values that it uses, and that earlier parts have made.
        storages: memory that it uses.
        uses: the tensors that are no arguments and that it uses, as they were.
        form: what is equal for two parts that do the same; see ``same``.
        code: its form in a tree.
        replaces: tensors whose gradients it is the first to replace, and whether they had none before the call.
        owners: optimizers that remove gradients, and the numbers of their parameters.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        seen: Any,
        results: Any,
        arrays: dict[int, Outer],
        found: Sequence[Tensor],
        tensors: int,
        fast: bool,
    ) -> None:
        self.statements, self.seen, self.fast = statements, seen, fast
        self.arrays, self.found, self.tensors = arrays, found, tensors
        self.made = {each.result.number: each.result for each in statements if each.result is not None}
        used = {each.number: each for each in _used(statements, results)}
        self.live = [each for number, each in used.items() if number not in self.made and number not in arrays]
        self.storages = frozenset(storage for each in used.values() for storage in each.storages).union(
            *(each.storages() for each in statements)
        )
        self._places = {arrays[number].place for number in used if number in arrays and arrays[number].found}
        self.uses = Found(self._finds())
        self.form = [(each.kind, [value.number for value in each.values()], _made(each)) for each in statements]
        self.code: Any = None
        self.replaces: Sequence[tuple[Tensor, bool]] = ()
        self.owners: Sequence[tuple[optim.Optimizer, int]] = ()

    def can_replace(self) -> bool:
        """Return whether the gradients that it changes are as they were: those that could be changed in place are not there."""
        free = all(leaf._grad is None for leaf, first in self.replaces if first)
        return free and all(_parameters(owner) == number for owner, number in self.owners)

    def same(self, other: Part) -> bool:
        """Return whether another part does the same, with tensors and arrays of the same layout."""
        return self.form == other.form and self.uses.alike(other.uses)

    def _finds(self) -> list[Tensor]:
        places = {each.place for statement in self.statements for each in outers_in(statement.args) if each.found}
        return [self.found[place] for place in sorted(places | self._places)]


def _used(statements: Sequence[Statement], results: Any) -> Iterator[Value]:
    for each in statements:
        yield from each.values()
    yield from values_in(results)


def _made(statement: Statement) -> Any:
    value = statement.result
    return None if value is None else (value.number, value.shape, value.dtype, value.strides)


class Outside:
    """Memory that does not belong to a program.

    Args:
        arrays: by their storages, the arrays of tensors.
        tensor: returns the tensor that an argument of a statement stands for.
        statements: the program; it may write to gradients that it has read.
        replaced: whether it changes no gradient in place that was there before: then these can be put back.
    """

    def __init__(
        self,
        arrays: Mapping[Storage, Array],
        tensor: Callable[[Outer], Tensor],
        statements: Sequence[Statement],
        replaced: bool = False,
    ) -> None:
        self._arrays, self._tensor = arrays, tensor
        self._replaced = replaced and not any(each.function is assign_gradient for each in statements)
        self._gradients: set[Storage] = set()
        read: set[int] = set()
        for each in statements:
            if each.function is read_gradient and each.result is not None:
                read.add(each.result.number)
            elif each.kind is Kind.EFFECT and each.result is not None and not read.isdisjoint(_numbers(each)):
                self._gradients |= each.result.storages

    def changed_by(self, statement: Statement) -> bool:
        """Return whether a statement changes something outside that cannot be put back."""
        if self.changes_gradients(statement):
            return not self._replaced
        return statement.changes and not statement.draws

    def changes_gradients(self, statement: Statement) -> bool:
        """Return whether all that a statement changes outside is gradients."""
        target, function = statement.target, statement.function
        if target is not None:
            return not target.storages.isdisjoint(self._gradients)
        return function in _OF_GRADIENTS or (function is call_whole and statement.args[0] in _CLIPPING)

    def uses_gradients(self, statement: Statement) -> bool:
        """Return whether a statement reads or changes gradients."""
        step = statement.kind is Kind.EFFECT and statement.changes and isinstance(statement.args[0], optim.Optimizer)
        return step or statement.function is read_gradient or self.changes_gradients(statement)

    def made_by(self, statement: Statement) -> set[Any]:
        """Return the memory and the objects that a statement makes or writes to."""
        found: set[Any] = {_DRAWN} if statement.draws else set()
        if self.changes_gradients(statement):
            found.add(_GRADIENTS)
        for value in (statement.result, statement.target):
            if value is not None:
                found |= _keys(value)
        return found

    def touched_by(self, statement: Statement) -> set[Any]:
        """Return the memory and the objects that a statement makes, writes to or reads."""
        found = self.made_by(statement) | statement.uses
        if self.uses_gradients(statement):
            found.add(_GRADIENTS)
        for value in statement.values():
            found |= _keys(value)
        return found

    def leaves_of(self, statements: Sequence[Statement]) -> list[Tensor]:
        """Return the tensors whose gradients statements may replace.

        Raises:
            Unrecordable: one is an argument of the call, so it is another one in each.
        """
        found: dict[int, Tensor] = {}
        for each in statements:
            if self.changes_gradients(each) and each.target is None:
                owner, outers = each.args[0], list(outers_in(each.args))
                if any(not outer.found for outer in outers):
                    raise Unrecordable("it looks at elements after gradients of its arguments have changed")
                more = list(owner.parameters()) if isinstance(owner, nn.Module) else []
                groups = owner.param_groups if isinstance(owner, optim.Optimizer) else []
                leaves = [*map(self._tensor, outers), *more, *tensors_of([group["params"] for group in groups])]
                found.update({id(leaf): leaf for leaf in leaves})
        return list(found.values())

    def owners_of(self, statements: Sequence[Statement]) -> list[tuple[optim.Optimizer, int]]:
        """Return the optimizers among the arguments of statements, and the numbers of their parameters."""
        owners = [each.args[0] for each in statements if each.args and isinstance(each.args[0], optim.Optimizer)]
        return [(owner, _parameters(owner)) for owner in owners]

    def written_by(self, statement: Statement) -> list[Array]:
        """Return the arrays that a statement that changes something outside may write to."""
        if statement.function in _OF_GRADIENTS:
            return []
        owner = statement.args[0] if statement.args else None
        if isinstance(owner, optim.Optimizer):
            given = [group["params"] for group in owner.param_groups], list(map(dict, owner.state.values()))
            return [each._array for each in tensors_of(given)]
        return self.used_by(statement)

    def used_by(self, statement: Statement) -> list[Array]:
        """Return the arrays that a statement has among its arguments."""
        storages = {storage for value in statement.values() for storage in value.storages}
        found = [self._arrays[each] for each in storages if each in self._arrays]
        return found + [self._tensor(each)._array for each in outers_in((statement.args, statement.kwargs))]


def parts_of(statements: Sequence[Statement], half: int, outside: Outside) -> list[list[Statement]]:
    """Return the parts of a program. The last one has all of its backward half.

    Args:
        statements: the program.
        half: the first statement of its backward half.
        outside: memory that does not belong to it.

    Raises:
        Unrecordable: a value that is looked at follows from a change.
    """
    parts: list[list[Statement]] = []
    part: list[Statement] = []
    for statement in statements[:half]:
        part.append(statement)
        if statement.function is look_at:
            try:
                first, part = _separated(part, outside)
            except Unrecordable as error:
                error.look = len(parts)
                raise
            parts.append(first)
    return [*parts, [*part, *statements[half:]]]


def _separated(statements: list[Statement], outside: Outside) -> tuple[list[Statement], list[Statement]]:
    """Return what runs before the look at the end of ``statements``, and the rest; each in order."""
    start = next((place for place, each in enumerate(statements) if outside.changed_by(each)), None)
    if start is None:
        return statements, []
    first, needed, later = statements[:start], _needed(statements[start:], outside), _Later(outside)
    for statement in statements[start:]:
        if id(statement) in needed:
            later.check(statement)
            first.append(statement)
        else:
            later.add(statement)
    return first, later.statements


def _needed(statements: list[Statement], outside: Outside) -> set[int]:
    """Return the ids of the statements that the last one follows from."""
    wanted, found = outside.touched_by(statements[-1]), {id(statements[-1])}
    for statement in reversed(statements[:-1]):
        if not outside.made_by(statement).isdisjoint(wanted):
            wanted |= outside.touched_by(statement)
            found.add(id(statement))
    return found


class _Later:
    """Statements that run behind a look.

    Args:
        outside: memory that does not belong to the program.

    Attributes:
        statements: in order.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self.statements: list[Statement] = []
        self._touched: set[Any] = set()
        self._nodes: set[int] = set()  # that run, and may free what they saved
        self._written: list[Array] = []

    def add(self, statement: Statement) -> None:
        """Add one."""
        self.statements.append(statement)
        self._touched |= self._outside.touched_by(statement)
        self._nodes |= _nodes(statement)
        if statement.changes:
            self._written += self._outside.written_by(statement)

    def check(self, statement: Statement) -> None:
        """Check that a statement that stands behind them can run before them.

        Raises:
            Unrecordable: it cannot.
        """
        target: frozenset[Storage] = frozenset() if statement.target is None else statement.target.storages
        used = self._outside.used_by(statement) if self._written else []
        if (
            self._outside.changed_by(statement)
            or (_GRADIENTS in self._touched and self._outside.uses_gradients(statement))
            or not self._touched.isdisjoint(target)
            or not self._nodes.isdisjoint(_nodes(statement))
            or any(np.may_share_memory(one, other) for one in used for other in self._written)
        ):
            raise Unrecordable(
                "it looks at elements that follow from a change of tensors or gradients in the same call; look at them "
                "before, or outside"
            )


def _parameters(owner: optim.Optimizer) -> int:
    return sum(len(group["params"]) for group in owner.param_groups)


def _keys(value: Value) -> set[Any]:
    return {*value.storages, ("value", value.number)}


def _numbers(statement: Statement) -> set[int]:
    """Return the numbers of the objects that are no arrays among the arguments."""
    return {each.number for each in values_in((statement.args, statement.kwargs)) if each.shape is None}


def _nodes(statement: Statement) -> set[int]:
    return _numbers(statement) if statement.function is run_node else set()
