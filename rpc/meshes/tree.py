"""Tree of the workers of a mesh call: pure functions from a list of members to subtrees.

A subtree is the list of its members, and the first of them is its root. Its children are the up to four equal parts of the
rest. So a list of members is all that a header needs, and a worker that adopts the children of a lost child finds the same
subtrees as the lost worker did.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

FAN_OUT = 4
T = TypeVar("T")


class Member(NamedTuple):
    """Worker in a mesh call.

    Attributes:
        number: number of the worker.
        place: its place in the mesh.
    """

    number: int
    place: int


Subtree: TypeAlias = tuple[Member, ...]


def split(members: Sequence[T]) -> list[tuple[T, ...]]:
    """Return up to four parts of some members, in their order, whose sizes differ by one at most."""
    parts = min(FAN_OUT, len(members))
    ends = [len(members) * part // parts for part in range(parts + 1)] if parts else []
    return [tuple(members[start:end]) for start, end in itertools.pairwise(ends)]


def children(subtree: Subtree) -> list[Subtree]:
    """Return the subtrees of the children of a subtree's root."""
    return split(subtree[1:])


def plant(numbers: Sequence[int], hosts: Sequence[str], caller: int) -> list[Subtree]:
    """Return the subtrees to which the caller of a mesh sends.

    Workers of one host are next to each other, the host of the first worker first. The caller, if it is a member, is a
    subtree of its own: it runs its part, and forwards for no other worker.

    Args:
        numbers: numbers of the workers, in the order of the mesh.
        hosts: host of each.
        caller: number of the caller.
    """
    first = {host: index for index, host in reversed(list(enumerate(hosts)))}
    order = sorted(range(len(numbers)), key=lambda index: (first[hosts[index]], index))
    members = [Member(numbers[index], index) for index in order]
    own = [(member,) for member in members if member.number == caller]
    return own + split([member for member in members if member.number != caller])


def depth(subtrees: Sequence[Subtree]) -> int:
    """Return the most hops from the caller to a member."""
    return max((1 + depth(children(subtree)) for subtree in subtrees), default=0)
