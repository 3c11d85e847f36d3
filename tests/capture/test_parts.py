"""``parts_of`` on random programs: with their parts one after the other they do the same, and looks come before changes."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from telegrad.capture.errors import Unrecordable
from telegrad.capture.looks import look_at
from telegrad.capture.parts import Outside, parts_of
from telegrad.capture.values import Kind, Outer, Statement, Value

OUTSIDE = 3  # tensors


def _program(random):
    """Return random statements, and the values that are arrays of tensors from outside."""
    values = [Value(number, frozenset([number]), np.ones(2)) for number in range(OUTSIDE)]
    given, statements, owned = dict(enumerate(values)), [], []
    for number in range(OUTSIDE, OUTSIDE + random.randrange(4, 14)):
        operand = random.choice(values[-5:] + values[:OUTSIDE])
        kind = random.choice(["call", "call", "view", "write", "change", "draw", "look"])
        if kind == "write" and owned:
            target = random.choice(owned)
            statements.append(Statement(Kind.WRITE, np.add, (operand,), target=target))
        elif kind == "change":
            outer = Outer(random.randrange(OUTSIDE), True)
            statements.append(Statement(Kind.EFFECT, _program, (outer, operand), changes=True))
        elif kind == "look":
            seen = Value(number, frozenset())
            statements.append(Statement(Kind.EFFECT, look_at, (bool, operand), result=seen))
        elif kind != "write":
            value = Value(number, operand.storages if kind == "view" else frozenset([number]), np.ones(2))
            if not value.storages & given.keys():
                owned.append(value)
            form = {"view": Kind.VIEW}.get(kind, Kind.CALL)
            statements.append(Statement(form, np.negative, (operand,), result=value, changes=kind == "draw"))
            statements[-1].draws = kind == "draw"
            values.append(value)
    return statements, given


def _run(statements):
    """Run them on memory that holds its history; return what is seen, in order, and what is left outside."""
    memory = {number: (number,) for number in range(OUTSIDE)}
    drawn, seen, histories = 0, {}, []
    for each in statements:
        read = tuple(memory[storage] for value in each.values() for storage in value.storages)
        if each.function is look_at:
            seen[each.result.number] = read
        elif each.function is _program:
            (outer, _), history = each.args, ("changed", *read)
            memory[outer.place] = (memory[outer.place], history)
            histories.append((outer.place, history))
        elif each.kind is Kind.WRITE:
            (storage,) = each.target.storages
            memory[storage] = (memory[storage], read)
        elif each.kind is Kind.CALL:
            drawn += each.draws
            memory[each.result.number] = (read, drawn if each.draws else None)
    return seen, histories, memory, drawn


@pytest.mark.parametrize("start", range(0, 4000, 1000))
def test_parts_do_what_the_program_does(start):
    divided = refused = 0
    for seed in range(start, start + 1000):
        statements, given = _program(Random(seed))
        arrays = {number: np.ones(2) for number in given}
        tensors = [SimpleNamespace(_array=arrays[number]) for number in given]
        outside = Outside(arrays, lambda outer, tensors=tensors: tensors[outer.place], statements)
        try:
            parts = parts_of(statements, len(statements), outside)
        except Unrecordable:
            refused += 1
            continue
        moved = [each for part in parts for each in part]
        assert sorted(map(id, moved)) == sorted(map(id, statements))
        assert _run(moved) == _run(statements), f"seed {seed}"
        assert not any(outside.changed_by(each) for part in parts[:-1] for each in part)
        divided += moved != statements
    assert divided > 50 and refused > 50
