"""Tree of the workers of a mesh call: pure functions from a list of members to subtrees.

A subtree is the list of its members, and the first of them is its root. Its children are parts of the rest: whole hosts, in up
to four parts, and the rest of its own host. Few messages leave a host. A message that stays there costs little, and a worker
that passes a call on costs as much as several that do not: so few do on one host, each for many others, and the tree is flat. A
list of members is all that a header needs, and a worker that adopts the children of a lost child finds the same subtrees as
the lost worker did.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

FAN_OUT = 4  # messages from the caller, and from one host to others
HOST_FAN_OUT = 64  # messages of a worker on its host
MEMBERS_OF_HEAD = 32  # of the caller's host to which it sends one message, if that makes no more than ``FAN_OUT``
T = TypeVar("T")


class Member(NamedTuple):
    """Worker in a mesh call.

    Attributes:
        number: number of the worker.
        place: its place in the mesh.
        host: number of its host among those of the mesh.
    """

    number: int
    place: int
    host: int


Subtree: TypeAlias = tuple[Member, ...]


def split(members: Sequence[T], most: int = FAN_OUT) -> list[tuple[T, ...]]:
    """Return up to ``most`` parts of some members, in their order, whose sizes differ by one at most."""
    parts = min(most, len(members))
    ends = [len(members) * part // parts for part in range(parts + 1)] if parts else []
    return [tuple(members[start:end]) for start, end in itertools.pairwise(ends)]


def children(subtree: Subtree) -> list[Subtree]:
    """Return the subtrees of the children of a subtree's root."""
    return _parts(subtree[1:], subtree[0].host, HOST_FAN_OUT, HOST_FAN_OUT) if len(subtree) > 1 else []


def local_messages(count: int, most: int, each: int) -> int:
    """Return how many messages a worker sends to members of its host.

    Args:
        count: number of the members.
        most: they are sent to directly if they are no more, and else by at most so many messages.
        each: members that one message reaches, if that makes no more messages than ``most``.
    """
    return count if count <= most else min(most, -(-count // each))


def _parts(members: Sequence[Member], host: int, most: int, each: int) -> list[Subtree]:
    """Return the subtrees to which a worker of a host sends: its own host's members, and whole other hosts."""
    local = [member for member in members if member.host == host]
    if len(local) == len(members):
        return split(local, local_messages(len(local), most, each))
    others = [tuple(group) for name, group in itertools.groupby(members, lambda member: member.host) if name != host]
    groups = split(others, FAN_OUT - bool(local))
    messages = local_messages(len(local), most - len(groups), each)
    return split(local, messages) + [tuple(itertools.chain(*group)) for group in groups]


def plant(numbers: Sequence[int], hosts: Sequence[str], caller: int, at: str) -> list[Subtree]:
    """Return the subtrees to which the caller of a mesh sends.

    Workers of one host are next to each other, the host of the first worker first. The caller, if it is a member, is a
    subtree of its own: it runs its part, and forwards for no other worker.

    Args:
        numbers: numbers of the workers, in the order of the mesh.
        hosts: host of each.
        caller: number of the caller.
        at: its host.
    """
    known = {host: index for index, host in enumerate(dict.fromkeys(hosts))}
    order = sorted(range(len(numbers)), key=lambda index: (known[hosts[index]], index))
    members = [Member(numbers[index], index, known[hosts[index]]) for index in order]
    own = [(member,) for member in members if member.number == caller]
    return own + _parts(
        [member for member in members if member.number != caller], known.get(at, -1), FAN_OUT, MEMBERS_OF_HEAD
    )


def depth(subtrees: Sequence[Subtree]) -> int:
    """Return the most hops from the caller to a member."""
    return max((1 + depth(children(subtree)) for subtree in subtrees), default=0)
