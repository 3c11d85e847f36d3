"""Leak report: references that other workers still hold when the job ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from .owner_table import Owned


class LeakReport:
    """References to one worker's values that other workers held until the end."""

    def __init__(self) -> None:
        self._held: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by name of the holder, by type of the value

    def add(self, holder: str, owned: Iterable[Owned]) -> None:
        """Note references that a worker holds.

        Args:
            holder: name of the worker.
            owned: records of the references at this worker, their owner.
        """
        kinds = Counter(kind_of(each) for each in owned)
        if kinds:
            self._held[holder] += kinds

    def text(self, owner: str) -> str:
        """Return the text of the report of the owner of that name; empty if no reference is held."""
        if not self._held:
            return ""
        holders = "; ".join(f"worker {name!r} {_listed(kinds)}" for name, kinds in sorted(self._held.items()))
        return (
            f"worker {owner!r} shuts down while others hold references to its values: {holders}. Drop or release() them before "
            f"shutdown(); if they are meant to live until the end, GrpcRpcBackendOptions(ignore_rref_leaks=True) ignores them"
        )


def kind_of(owned: Owned) -> str:
    """Return the name of the type of a value, for the report."""
    value = owned.value
    if value is None or not value.done():
        return "no value yet"
    return "an error" if value.exception() is not None else type(value.value()).__qualname__


def _listed(kinds: Counter[str]) -> str:
    return f"{kinds.total()} (" + ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items())) + ")"
