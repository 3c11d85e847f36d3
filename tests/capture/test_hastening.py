"""Messages to other workers leave before the calls that they do not need, which keep their order and all that they read."""

import itertools

import pytest
from telegrad.capture.hastening import hastened
from telegrad.capture.values import Kind, Statement, Value

NAMES = "abcdefgh"


class Program:
    """Statements by their names."""

    def __init__(self):
        self.statements, self.values, self.names = [], {}, {}

    def add(self, name, kind, *args, target=None, **marks):
        base = self.values[args[0]].storages if kind is Kind.VIEW else frozenset([len(self.statements)])
        made = Value(len(self.statements), base)
        given = tuple(self.values[each] for each in args)
        statement = Statement(kind, print, given, result=None if target else made, **marks)
        statement.target = self.values[target] if target else None
        self.values[name] = made
        self.names[id(statement)] = name
        self.statements.append(statement)

    def order(self, *cuts):
        found = hastened(self.statements, [0, *cuts, len(self.statements)])
        return "".join(self.names[id(each)] for each in found)


def test_calls_that_a_message_does_not_need_come_after_it():
    program = Program()
    program.add("a", Kind.CALL)
    program.add("l", Kind.CALL, "a")  # a loss
    program.add("b", Kind.CALL, "a")
    program.add("w", Kind.CALL, "a", "b")  # a gradient of a weight
    program.add("M", Kind.EFFECT, "b", leaves=True)
    program.add("T", Kind.EFFECT, "M")
    program.add("c", Kind.CALL, "w")
    assert program.order() == "abMlwTc"


def test_what_is_written_and_read_keeps_its_order():
    program = Program()
    program.add("a", Kind.CALL)
    program.add("v", Kind.VIEW, "a")
    program.add("r", Kind.CALL, "a")  # it reads what is written to next
    program.add("w", Kind.WRITE, target="v")
    program.add("x", Kind.CALL, "a")
    program.add("M", Kind.EFFECT, "a", leaves=True)
    assert program.order() == "avrwMx"


def test_effects_and_parts_keep_their_places():
    program = Program()
    program.add("a", Kind.CALL)
    program.add("E", Kind.EFFECT)
    program.add("b", Kind.CALL)
    program.add("k", Kind.CALL, checked=True)
    program.add("c", Kind.CALL)
    program.add("d", Kind.CALL)
    program.add("M", Kind.EFFECT, "a", leaves=True)
    assert program.order() == "aEbkMcd"
    assert program.order(5) == "aEbkcMd"


def test_several_messages_pass_the_same_calls():
    program = Program()
    program.add("a", Kind.CALL)
    program.add("b", Kind.CALL)
    program.add("c", Kind.CALL)
    program.add("M", Kind.EFFECT, "a", leaves=True)
    program.add("N", Kind.EFFECT, "c", leaves=True)
    assert program.order() == "aMcNb"


@pytest.mark.parametrize("reads", [*itertools.product(range(8), repeat=2)])
def test_each_call_comes_after_what_it_reads(reads):
    program = Program()
    for place, name in enumerate(NAMES):
        program.add(name, Kind.CALL, *{NAMES[each] for each in (reads[0] ^ place, reads[1] ^ place) if each < place})
        if place % 3 == 2:
            program.add(name.upper(), Kind.EFFECT, NAMES[place - place // 3], leaves=True)
    order = program.order()
    for statement in program.statements:
        here = order.index(program.names[id(statement)])
        assert all(order.index(program.names[id(program.statements[each.number])]) < here for each in statement.args)
    assert [each for each in order if each.isupper()] == ["C", "F"]
