"""Names in the instruction that a frame executes: the function that it calls, the object of its ``with`` statement.

They come from the bytecode. Objects are looked up in dictionaries and slots only, so that no code of the program runs.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple

ENTERS = {"BEFORE_WITH", "SETUP_WITH", "LOAD_SPECIAL"}
LOADS = {
    "LOAD_FAST",
    "LOAD_FAST_CHECK",
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "LOAD_DEREF",
    "LOAD_CLASSDEREF",
    "LOAD_FAST_BORROW",
}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
FILLERS = {"PUSH_NULL", "PRECALL", "KW_NAMES", "NOP", "EXTENDED_ARG", "CACHE", "RESUME"}
CALLS = {
    "CALL": 2,
    "CALL_FUNCTION": 1,
    "CALL_METHOD": 2,
    "CALL_KW": 3,
    "CALL_FUNCTION_KW": 2,
}  # operands beside arguments
MOST_INSTRUCTIONS = 20_000  # of a function that is looked at
MISSING = object()


class Expression(NamedTuple):
    """Name with attributes, such as ``self.lock``."""

    base: str
    attributes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join([self.base, *self.attributes])


class Executed(NamedTuple):
    """Instruction that a frame executes: ``enters`` a ``with`` statement of the object, or calls the function."""

    enters: bool
    expression: Expression


@lru_cache(maxsize=512)
def executed(code: CodeType, offset: int) -> Executed | None:
    """Return what the instruction at an offset calls or enters; None if that has no name.

    Args:
        code: of the frame.
        offset: the frame's ``f_lasti``.
    """
    if len(code.co_code) > 2 * MOST_INSTRUCTIONS:
        return None
    before = [each for each in dis.get_instructions(code) if each.offset <= offset]
    while before and before[-1].opname in FILLERS:
        before.pop()
    if not before:
        return None
    last = before.pop()
    if last.opname in ENTERS:
        expression = _operand(before, 1)
    elif last.opname in CALLS:
        expression = _operand(before, (last.arg or 0) + CALLS[last.opname])
    else:
        return None
    return None if expression is None else Executed(last.opname in ENTERS, expression)


def _operand(before: list[dis.Instruction], depth: int) -> Expression | None:
    """Return the expression that made the operand at a depth of the stack; 1 is the top."""
    height = 0
    for index in range(len(before) - 1, -1, -1):
        each = before[index]
        height -= _effect(each)
        if height <= -depth:
            return _expression(before[index:])
    return None


def _effect(each: dis.Instruction) -> int:
    if each.opname == "PRECALL":  # its effect is counted again by the call
        return 0
    return dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None, jump=False)


def _expression(instructions: list[dis.Instruction]) -> Expression | None:
    named = [each for each in instructions if each.opname not in FILLERS]
    if not named or named[0].opname not in LOADS:
        return None
    attributes = []
    for each in named[1:]:
        if each.opname not in ATTRIBUTES:
            break
        attributes.append(str(each.argval))
    return Expression(str(named[0].argval), tuple(attributes))


@lru_cache(maxsize=512)
def entered(code: CodeType, offset: int) -> tuple[Expression, ...]:
    """Return the objects of the ``with`` statements in whose bodies the instruction at an offset is."""
    if len(code.co_code) > 2 * MOST_INSTRUCTIONS:
        return ()
    instructions = list(dis.get_instructions(code))
    at = {each.offset: index for index, each in enumerate(instructions)}
    starts = _starts_before_311(instructions, offset) if sys.version_info < (3, 11) else _starts(code, offset)
    found = (executed(code, instructions[index].offset) for start in starts if (index := at.get(start, -1)) >= 0)
    return tuple(each.expression for each in found if each is not None and each.enters)


def _starts_before_311(instructions: list[dis.Instruction], offset: int) -> Iterator[int]:
    for each in instructions:
        if each.opname == "SETUP_WITH" and each.offset < offset < each.argval:
            yield each.offset


def _starts(code: CodeType, offset: int) -> Iterator[int]:
    """Return the offsets of the instructions that entered the ``with`` statements around an offset.

    Each protected range has a handler. The handler of an inner one is in the range of the outer one.
    """
    entries = vars(dis)["_parse_exception_table"](code)
    handlers: set[int] = set()
    while (target := next((each.target for each in entries if each.start <= offset < each.end), None)) is not None:
        if target in handlers:
            return
        handlers.add(target)
        start = min(each.start for each in entries if each.target == target)
        yield _before(code, start)
        offset = target


def _before(code: CodeType, offset: int) -> int:
    """Return the offset of the instruction before one, without those that only hold a place."""
    real = [each.offset for each in dis.get_instructions(code) if each.offset < offset and each.opname not in FILLERS]
    return real[-1] if real else -1


def look_up(frame: FrameType, expression: Expression) -> Any:
    """Return the object of an expression in a frame, ``MISSING`` if dictionaries and slots do not have it.

    Args:
        frame: of a thread that may run meanwhile.
        expression: its name.
    """
    names: Any = frame.f_locals
    if (
        not frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(names) is not dict
    ):  # a namespace of the program's own type
        return MISSING
    found = names.get(expression.base, MISSING)
    if found is MISSING:
        found = dict.get(frame.f_globals, expression.base, MISSING)
    for attribute in expression.attributes:
        if found is not MISSING:
            found = attribute_of(found, attribute)
    return found


def attribute_of(owner: Any, name: str) -> Any:
    """Return an attribute that a dictionary or a slot has, without running code; ``MISSING`` for others."""
    if type(owner) is ModuleType:
        return vars(owner).get(name, MISSING)
    found = inspect.getattr_static(owner, name, MISSING)
    if type(found) is MemberDescriptorType:
        try:
            return found.__get__(owner)
        except (AttributeError, TypeError):
            return MISSING
    return found
