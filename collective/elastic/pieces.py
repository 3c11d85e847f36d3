"""Pieces of a batch, and sums of their rows in an order that does not depend on which worker has which pieces.

The pieces are the leaves of a binary tree, which depends on their number alone. A worker adds up the largest subtrees of which
it has all pieces; these *blocks* are put together afterwards. Each addition of the tree is done once, with the same two
numbers, wherever it is done: so the sum has the same bits for any number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...core.extend import Array

Block: TypeAlias = tuple[int, int]  # its first piece, and the one after its last
Row: TypeAlias = Sequence[Array]


def share(count: int, part: int, parts: int) -> range:
    """Return one part of ``count`` things: their numbers. Parts follow one another, and differ by at most one in size."""
    return range(count * part // parts, count * (part + 1) // parts)


def blocks(mine: range, pieces: int) -> list[Block]:
    """Return the largest subtrees whose pieces are all ``mine``.

    Args:
        mine: successive pieces.
        pieces: their number in all.
    """

    def within(block: Block) -> list[Block]:
        first, end = block
        if first >= mine.stop or end <= mine.start or first == end:
            return []
        if first >= mine.start and end <= mine.stop:
            return [block]
        return [found for half in halves(block) for found in within(half)]

    return within((0, pieces))


def halves(block: Block) -> tuple[Block, Block]:
    """Return the two children of a subtree of at least two pieces."""
    first, end = block
    middle = (first + end) // 2
    return (first, middle), (middle, end)


def add_up(block: Block, rows: Mapping[Block, Row]) -> Row:
    """Return the sum of a subtree.

    Args:
        block: the subtree.
        rows: those of blocks or single pieces that make it up; each row is several arrays, which are not changed.
    """
    if block in rows:
        return rows[block]
    left, right = (add_up(half, rows) for half in halves(block))
    return [one + other for one, other in zip(left, right, strict=True)]
