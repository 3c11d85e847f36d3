"""The process groups of this process: the default one, and those that ``new_group`` makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..base.errors import CollectiveError
from ..base.process_group_place import Place, set_place
from .group import ProcessGroup

GROUP_TIMEOUT = timedelta(minutes=30)
Maker = Callable[[str, Sequence[int], float], ProcessGroup]


class NonMember:
    """Stands for a group that this process is not in (``GroupMember.NON_GROUP_MEMBER``); collectives on it do nothing."""


NON_GROUP_MEMBER = NonMember()


class GroupMember:
    """Holder of the value that ``new_group`` returns to non-members (``torch.distributed.GroupMember``)."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


class Registry:
    """Groups of one process."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._made = 0  # since the default group was made: names are not used again, as messages may come late
        self.default: ProcessGroup | None = None
        self._make: Maker | None = None
        self._release: Callable[[], None] | None = None
        self._groups: list[ProcessGroup] = []

    def open(self, make: Maker, ranks: Sequence[int], timeout: float, release: Callable[[], None]) -> None:
        """Make the default group.

        Args:
            make: makes a group of a name, ranks and a time-out in seconds.
            ranks: of the whole job.
            timeout: of its collectives, in seconds.
            release: ends what carries the groups; called once after the last is closed.
        """
        self.check_closed()
        self._make, self._release = make, release
        self._made += 1
        self.default = self._add("world", ranks, timeout)
        set_place(Place(self.default.rank(), self.default.size()))

    def check_closed(self) -> None:
        """Raise if there is a default group.

        Raises:
            CollectiveError: there is one.
        """
        if self.default is not None:
            raise CollectiveError("there is a default process group already; call destroy_process_group() first")

    def world(self) -> ProcessGroup:
        """Return the default group.

        Raises:
            CollectiveError: there is none.
        """
        if self.default is None:
            raise CollectiveError("there is no default process group; call init_process_group() first")
        return self.default

    def add(self, ranks: Sequence[int], timeout: float) -> ProcessGroup | NonMember:
        """Make a group; all processes of the job call this in the same order."""
        world = self.world()
        self._made += 1  # also by those who are not in it, so that names are the same everywhere
        if world.ranks[world.index] not in ranks:
            return NON_GROUP_MEMBER
        return self._add(f"group {self._made} of ranks {', '.join(map(str, ranks))}", ranks, timeout)

    def remove(self, group: ProcessGroup | None) -> None:
        """Close a group; with ``None`` or the default one, all of them."""
        for each in self._groups if group in (None, self.default) else [group]:
            assert each is not None
            each.destroyed = True
            each.close()
        if group not in (None, self.default):
            self._groups = [each for each in self._groups if each is not group]
            return
        release = self._release
        self._clear()
        set_place(None)
        if release is not None:
            release()

    def _add(self, name: str, ranks: Sequence[int], timeout: float) -> ProcessGroup:
        assert self._make is not None
        group = self._make(name, ranks, timeout)
        self._groups.append(group)
        return group


registry = Registry()


def find(group: Any) -> ProcessGroup | None:
    """Return a group of this process: the default one for ``None``; ``None`` for a group that this process is not in.

    Raises:
        CollectiveError: it was destroyed, or there is no default group.
        TypeError: it is no group.
    """
    if group is None:
        return registry.world()
    if group is NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"group must be a ProcessGroup, as new_group returns it, or None; you gave {group!r}")
    if group.destroyed:
        raise CollectiveError(f"group {group.name!r} was destroyed; make a new one")
    return group


def member(group: ProcessGroup, rank: int | None, index: int | None, name: str, default: int | None = None) -> int:
    """Return a member's index, given by its rank in the job or by its index.

    Args:
        group: the group.
        rank: the rank; ``None`` if the index is given.
        index: the index; ``None`` if the rank is given.
        name: of the argument for the rank: ``"src"`` or ``"dst"``.
        default: the index if neither is given; ``None`` if one must be.

    Raises:
        ValueError: both are given, or neither, or there is no such member.
    """
    if rank is not None and index is not None:
        raise ValueError(f"{name} and group_{name} say the same; give one of them")
    if rank is None and index is None:
        if default is None:
            raise ValueError(f"{name} must be given: the rank of a member of the group")
        return default
    if index is None:
        if rank not in group.ranks:
            raise ValueError(f"{name} must be one of the ranks {list(group.ranks)} of the group; you gave {rank!r}")
        return group.ranks.index(rank)
    if index not in range(group.size()):
        raise ValueError(f"group_{name} must be 0 to {group.size() - 1}; you gave {index!r}")
    return index


def seconds(timeout: timedelta | float | None, default: float) -> float:
    """Return a time-out in seconds.

    Raises:
        ValueError: it is not above 0.
    """
    value = default if timeout is None else timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"timeout must be a timedelta, or a number of seconds above 0; you gave {timeout!r}")
    return float(value)


def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | float | None = None, backend: str | None = None
) -> ProcessGroup | NonMember:
    """Make a group of some ranks. All processes of the job call it, in the same order, members or not.

    Args:
        ranks: the members' ranks; ``None`` for all.
        timeout: of the group's collectives: a timedelta, or seconds; ``None`` for the default group's.
        backend: not used: all groups have the default group's.

    Returns:
        The group, or ``GroupMember.NON_GROUP_MEMBER``.

    Raises:
        CollectiveError: there is no default group.
        ValueError: a rank is not in the job, or comes twice.
    """
    world = registry.world()
    members = sorted(world.ranks if ranks is None else ranks)
    if not members or len(set(members)) < len(members) or not set(members) <= set(world.ranks):
        raise ValueError(f"ranks must be different ranks of {list(world.ranks)}; you gave {ranks!r}")
    return registry.add(members, seconds(timeout, world.timeout))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Close a group; without one, or with the default one, all groups.

    Raises:
        CollectiveError: it was destroyed before, or there is none.
    """
    found = find(group)
    if found is not None:
        registry.remove(found)


def is_available() -> bool:
    """Return ``True``."""
    return True


def is_initialized() -> bool:
    """Return whether there is a default group."""
    return registry.default is not None


def get_rank(group: ProcessGroup | NonMember | None = None) -> int:
    """Return this process's place in a group, the default one without one; -1 if it is not in it."""
    found = find(group)
    return -1 if found is None else found.index


def get_world_size(group: ProcessGroup | NonMember | None = None) -> int:
    """Return the number of members of a group, the default one without one; -1 if this process is not in it."""
    found = find(group)
    return -1 if found is None else found.size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return what carries a group: ``"rpc"`` or ``"mpi"``.

    Raises:
        ValueError: this process is not in the group.
    """
    found = find(group)
    if found is None:
        raise ValueError("this process is not in the group")
    return found.backend


def get_process_group_ranks(group: ProcessGroup | NonMember | None) -> list[int]:
    """Return the members' ranks in the job."""
    found = find(group)
    return [] if found is None else list(found.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the job of the member with that index.

    Raises:
        ValueError: there is none.
    """
    found = find(group)
    if found is None or group_rank not in range(found.size()):
        raise ValueError(f"the group has no member {group_rank!r}")
    return found.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the index of the member with that rank in the job.

    Raises:
        ValueError: there is none.
    """
    found = find(group)
    if found is None or global_rank not in found.ranks:
        raise ValueError(f"rank {global_rank!r} is not in the group")
    return found.ranks.index(global_rank)
