"""``MachineReaders``: one reader of each machine fetches a buffer, the others wait for its copy and map it. Pure.

A reader that waits fetches itself if the first one ends or stands still. If the copy of the first one cannot be mapped, one
reader takes its place, and the others wait for that one: its worker may have dropped the copy since. After the second copy that
it cannot map, a reader fetches itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .fetch_plan import FetchPlan, Holder
    from .memory import BufferPlace


class MachineReaders:
    """Readers of one buffer by machine. The owner keeps it beside the plan, which knows those that fetch.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: FetchPlan) -> None:
        self._plan = plan
        self._first: dict[bytes, Holder] = {}  # by machine, the reader that fetches, or has fetched
        self._waits: dict[
            Holder, tuple[bytes, Holder, int]
        ] = {}  # machine, first reader, pieces which that needed then
        self._places: dict[Holder, BufferPlace] = {}  # of copies that are whole
        self._maps: dict[Holder, Holder] = {}  # readers that were told a place, and have not said what came of it
        self._failed: set[Holder] = set()  # readers that could not map a copy, and wait for another one

    def begin(self, reader: Holder, machine: bytes) -> None:
        """Note a new reader: it waits for the first of its machine, or is that one.

        Args:
            reader: its worker and copy.
            machine: names its machine; empty if it maps no copies of others.
        """
        self._maps.pop(reader, None)
        first = self._first.get(machine) if machine else None
        if first is None or first == reader or not self._plan.knows(first):
            self._fetches(reader, machine)
        else:
            self._waits[reader] = machine, first, self._plan.left(first)

    def _fetches(self, reader: Holder, machine: bytes) -> None:
        self._first[machine] = reader
        self._failed.discard(reader)
        self._plan.begin(reader)

    def waits(self, reader: Holder) -> bool:
        """Return whether a reader waits for another one."""
        return reader in self._waits

    def place(self, reader: Holder) -> BufferPlace | None:
        """Return the place of the copy that a reader waits for, if that is whole. It may have to fetch itself from now on."""
        machine, first, _ = self._waits[reader]
        if not self._plan.knows(first):
            del self._waits[reader]
            self.begin(reader, machine)
        elif self._plan.complete(first) and first in self._places:
            del self._waits[reader]
            self._maps[reader] = first
            return self._places[first]
        return None

    def whole(self, reader: Holder, place: BufferPlace) -> None:
        """Note where the whole copy of a reader is."""
        self._places = {each: at for each, at in self._places.items() if self._plan.knows(each)}
        self._places[reader] = place

    def starved(self, reader: Holder) -> None:
        """Note that a reader has waited for long: it fetches itself if the first one has got nothing meanwhile."""
        machine, first, before = self._waits[reader]
        if self._plan.knows(first) and (left := self._plan.left(first)) < before:
            self._waits[reader] = machine, first, left
        else:
            del self._waits[reader]
            self._fetches(reader, machine)

    def mapped(self, reader: Holder) -> None:
        """Note that a reader has mapped the copy whose place it was told: it needs no pieces, and lends none."""
        self._plan.leave(reader)
        self.leave(reader)

    def not_mapped(self, reader: Holder, machine: bytes) -> None:
        """Note that a reader could not map it: it fetches, or waits for the reader that is the first of its machine by now."""
        first = self._maps.pop(reader, None)
        if first is None:  # the reader has asked again meanwhile
            return
        if reader in self._failed or self._first.get(machine) == first:
            self._fetches(reader, machine)
        else:
            self._failed.add(reader)
            self.begin(reader, machine)

    def leave(self, reader: Holder) -> None:
        """Note that a reader has ended."""
        self._waits.pop(reader, None)
        self._maps.pop(reader, None)
        self._failed.discard(reader)

    def lost(self, worker: int) -> None:
        """Note that a worker is lost."""
        for reader in [each for each in (*self._waits, *self._maps, *self._failed) if each[0] == worker]:
            self.leave(reader)

    def needs(self, first: Holder) -> bool:
        """Return whether others are still to map the copy of a reader, which must keep it."""
        return first in self._maps.values() or any(waits[1] == first for waits in self._waits.values())
