"""Limits of what a file can make its reader hash, print or copy: counted before it is done, bounded by the file's size."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

_DEEPEST = 500  # tuples in tuples
_PARTS = 100_000  # that a file of any size may have hashed or printed; in pickles one object can be a part of many
_OCTETS = 16 << 20  # that a file of any size may have allocated
_ALIKE = (
    2000  # keys that may have the same hash: each is compared with all. Hashes of -1 and -2 are equal, also in tuples
)


class Limits:
    """Counts of what the reading of a file of ``size`` bytes may still do. Each method raises ``ValueError`` at the limit."""

    def __init__(self, size: int) -> None:
        self._parts = size + _PARTS
        self._octets = 3 * size + _OCTETS
        self._first: dict[int, Hashable] = {}  # by hash: the first key that had it
        self._others: dict[int, set[Hashable]] = {}  # and the other keys

    def allocate(self, octets: int) -> None:
        """Count memory of tensors, before it is allocated."""
        self._octets -= octets
        if self._octets < 0 or octets < 0:
            raise ValueError(
                "its tensors need more than three times its size, as those of torch.save() and telegrad.save() never do"
            )

    def hash(self, key: Any) -> None:
        """Count a key of a dict or set, before it is hashed."""
        if type(key) is str or (type(key) is int and key.bit_length() <= 60):
            return  # strings are hashed once, with a secret; such integers all have other hashes
        self.read(key)
        first = self._first.setdefault(hash(key), key)
        if first is not key and first != key:
            alike = self._others.setdefault(hash(key), set())
            alike.add(key)
            if len(alike) > _ALIKE:
                raise ValueError(f"it has more than {_ALIKE} keys with the same hash")

    def read(self, value: Any) -> None:
        """Count the parts of a value, as often as they are in it, before it is hashed, printed or copied."""
        parts = [value]
        while parts:
            part = parts.pop()
            self._parts -= _length(part)
            if self._parts < 0:
                raise ValueError(
                    "its keys and arguments have more parts than a file of its size can describe one by one"
                )
            if isinstance(part, (tuple, list, set, frozenset, dict)):
                parts.extend(part)
            if isinstance(part, dict):
                parts.extend(part.values())


def _length(part: Any) -> int:
    """Return how many parts a value adds to those of what it is in, without the parts of its parts."""
    if isinstance(part, int):
        return part.bit_length() // 64
    return len(part) + 1 if isinstance(part, (tuple, list, set, frozenset, dict, str, bytes, bytearray)) else 0


def check_depth(depth: int) -> None:
    """Check how deep a tuple is nested, before it is made.

    Raises:
        ValueError: it is nested too deep.
    """
    if depth > _DEEPEST:
        raise ValueError(f"it has tuples that are nested more than {_DEEPEST} deep")
