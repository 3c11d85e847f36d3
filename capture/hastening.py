"""``hastened``: messages to other workers leave as early as possible, and calls that they do not need run meanwhile.

So a worker computes its loss, and the gradients of its own parameters, while another one has its message. The same calls on the
same arrays give the same bits in another order. Effects keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .deferring import written
from .values import Kind, Statement


def hastened(statements: Sequence[Statement], cuts: Sequence[int]) -> list[Statement]:
    """Return the program with its messages as early as possible. Its parts begin where they did.

    Args:
        statements: the program.
        cuts: where its parts begin, and where the last ends.
    """
    done: list[Statement] = []
    for start, stop in pairwise(cuts):
        waiting: list[Statement] = []  # they may run later
        for statement in statements[start:stop]:
            if statement.leaves:
                needed, waiting = _divided(waiting, statement)
                done += [*needed, statement]
            elif statement.kind is Kind.EFFECT or statement.checked:
                done += [*waiting, statement]
                waiting = []
            else:
                waiting.append(statement)
        done += waiting
    return done


def _divided(statements: Sequence[Statement], message: Statement) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that must run before a message, and the others.

    Args:
        statements: those before it.
        message: the statement that sends it.
    """
    needed: list[Statement] = []
    others: list[Statement] = []
    read = {value.number for value in message.values()}  # by what must run, as are these:
    touched, changed = {*message.storages()}, set[int]()
    for statement in reversed(statements):
        writes = frozenset[int]() if statement.kind is Kind.VIEW else written(statement)
        is_read = statement.result is not None and statement.result.number in read
        if is_read or not writes.isdisjoint(touched) or not changed.isdisjoint(statement.storages()):
            needed.append(statement)
            read.update(value.number for value in statement.values())
            touched |= statement.storages()
            changed |= writes
        else:
            others.append(statement)
    return needed[::-1], others[::-1]
