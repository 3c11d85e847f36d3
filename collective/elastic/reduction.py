"""Mean of the rows of a batch over the members of a generation, and one bit of each member."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...core.extend import Array
from ..group import ProcessGroup
from ..reduction import ReduceOp
from .pieces import Block, Row, add_up, blocks, share


def add_all(group: ProcessGroup, rows: Row) -> Row:
    """Replace the rows of all members by their sum, in the order of the members."""
    for row in rows:
        group.all_reduce(group.begin("elastic gradients", f"{row.dtype}[{row.size}]", row.nbytes), row, ReduceOp.SUM)
    return rows


def add_pieces(group: ProcessGroup, rows: Mapping[Block, Row], pieces: int) -> Row:
    """Return the sum of the rows of all pieces, in an order that follows from the number of pieces alone.

    Each member adds up one part of all rows, so about twice the rows of its blocks travel to and from it.

    Args:
        group: the members; each has rows of the successive pieces that ``share`` gives it.
        rows: of this member's pieces, by (piece, piece + 1).
        pieces: their number in all.
    """
    mine = {block: add_up(block, rows) for block in blocks(share(pieces, group.index, group.size()), pieces)}
    if group.size() == 1:
        return mine[0, pieces]
    sent = [{block: _part(row, index, group.size()) for block, row in mine.items()} for index in range(group.size())]
    arrived = group.all_to_all(group.begin("elastic pieces", pieces), sent)
    known = {tuple(block): row for each in arrived for block, row in each.items()}
    part = add_up((0, pieces), known)
    parts = group.all_gather(group.begin("elastic gradients", pieces), list(part))
    return [np.concatenate(list(arrays)) for arrays in zip(*parts, strict=True)]


def any_wants(group: ProcessGroup, mine: bool) -> bool:
    """Return whether any member gives True. It returns when all members have called it."""
    flag = np.array([float(mine)])
    group.all_reduce(group.begin("elastic commit", None, flag.nbytes), flag, ReduceOp.SUM)
    return bool(flag[0])


def _part(row: Row, index: int, parts: int) -> list[Array]:
    return [np.array_split(array, parts)[index] for array in row]
