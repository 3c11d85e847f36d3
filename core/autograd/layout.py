"""``Layout``: places of a graph's nodes in rows, and ways for its edges that pass no box.

It is a short form of that of Sugiyama et al. (1981): each node is in a row below all nodes that use it, and near the middle of
those; the edges over several rows that lead to one node have a narrow place of their own in each row that they pass.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

Key = TypeVar("Key", bound=Hashable)
Point: TypeAlias = tuple[float, float]
WIDTH, HEIGHT, GAP_X, GAP_Y = 150, 44, 24, 38  # of a node's box, and around it
PASSAGE = 12  # width of the place of an edge that passes a row


class Passage:
    """Place of edges to one node in a row that they pass."""


class Way(NamedTuple):
    """Way of an edge: its points, and whether it leads to the node, or joins another edge that does.

    Its parts are curves between rows and, in turn, straight lines along passages.
    """

    points: list[Point]
    arrives: bool


class Layout(Generic[Key]):
    """Places in a picture. Nodes of one frame share an area; frames are beside one another.

    Args:
        nodes: the nodes.
        edges: pairs (node, node that is below it); without a cycle.
        frame: returns the frame of a node; frames are in the order of their first nodes.
        corner: upper left corner of the first frame's area.
        between: width between the areas of two frames.
        frames: all frames, in order, if there may be some without nodes.

    Attributes:
        rows: the row of each node, from 0.
        frames: left edge and width of each frame's area.
        bottom: lower edge of the last row.
    """

    def __init__(
        self,
        nodes: Iterable[Key],
        edges: Sequence[tuple[Key, Key]],
        frame: Callable[[Key], Any] = lambda node: None,
        corner: Point = (0, 0),
        between: float = 0,
        frames: Iterable[Any] = (),
    ) -> None:
        self.rows = rows_of(nodes, edges)
        self._top = corner[1]
        self._passages: dict[Key, dict[int, Passage]] = {}  # by the node that they lead to, and by row
        self._joining: set[tuple[Key, Key]] = set()  # edges that join another one in the row below
        self._above: dict[Key | Passage, list[Key | Passage]] = {}
        content: dict[Any, list[list[Key | Passage]]] = {each: self._empty() for each in frames}
        for node, row in self.rows.items():
            content.setdefault(frame(node), self._empty())[row].append(node)
        for one, other in sorted(dict.fromkeys(edges), key=lambda edge: self.rows[edge[0]]):
            self._lead(one, other, content[frame(other)])
        self.bottom = self._top + max(1, self._count()) * (HEIGHT + GAP_Y) - GAP_Y
        self._lefts: dict[Key | Passage, float] = {}
        self.frames: dict[Any, tuple[float, float]] = {}
        left = corner[0]
        for name, area in content.items():
            width = max((_width(row) for row in area), default=WIDTH)
            self.frames[name] = left, width
            self._set(area, left + width / 2)
            left += width + between

    def place(self, node: Key) -> Point:
        """Return the upper left corner of a node's box."""
        return self._lefts[node], self._y(self.rows[node])

    def way(self, one: Key, other: Key) -> Way:
        """Return the way of an edge."""
        row, end = self.rows[one], self.rows[other]
        points: list[Point] = [(self._lefts[one] + WIDTH / 2, self._y(row) + HEIGHT)]
        passed = [row + 1] if (joins := (one, other) in self._joining) else range(row + 1, end)
        for each in passed:
            middle = self._lefts[self._passages[other][each]] + PASSAGE / 2
            points += [(middle, self._y(each)), (middle, self._y(each) + HEIGHT)]
        if not joins:
            points.append((self._lefts[other] + WIDTH / 2, self._y(end)))
        return Way(points, not joins)

    def _count(self) -> int:
        return max(self.rows.values(), default=-1) + 1

    def _empty(self) -> list[list[Key | Passage]]:
        return [[] for _ in range(self._count())]

    def _y(self, row: int) -> float:
        return self._top + row * (HEIGHT + GAP_Y)

    def _lead(self, one: Key, other: Key, area: list[list[Key | Passage]]) -> None:
        """Give an edge its passages, in the frame that it leads to; those that begin higher have theirs already."""
        passages = self._passages.setdefault(other, {})
        row, end = self.rows[one] + 1, self.rows[other]
        above: Key | Passage = one
        while row < end and row not in passages:
            passages[row] = Passage()
            area[row].append(passages[row])
            self._above.setdefault(passages[row], []).append(above)
            above, row = passages[row], row + 1
        if row < end:
            self._joining.add((one, other))
            self._above[passages[row]].append(above)
        else:
            self._above.setdefault(other, []).append(above)

    def _set(self, area: Iterable[list[Key | Passage]], middle: float) -> None:
        """Place the rows of a frame around its middle, each node near the middle of what is above it in the frame."""
        centres: dict[Key | Passage, float] = {}
        for row in area:
            near = {each: _mean([centres[one] for one in self._above.get(each, ()) if one in centres]) for each in row}
            left = middle - _width(row) / 2
            for each in sorted(row, key=lambda each: near[each]):
                self._lefts[each] = left
                centres[each] = left + _wide(each) / 2 - middle
                left += _wide(each) + GAP_X


def rows_of(nodes: Iterable[Key], edges: Iterable[tuple[Key, Key]]) -> dict[Key, int]:
    """Return the row of each node: one more than the lowest of those that lead to it.

    Args:
        nodes: the nodes.
        edges: pairs (node, node that is below it); without a cycle.
    """
    rows = dict.fromkeys(nodes, 0)
    below: dict[Key, list[Key]] = {node: [] for node in rows}
    above = dict.fromkeys(rows, 0)
    for one, other in edges:
        below[one].append(other)
        above[other] += 1
    ready = [node for node, count in above.items() if not count]
    while ready:
        node = ready.pop()
        for other in below[node]:
            rows[other] = max(rows[other], rows[node] + 1)
            above[other] -= 1
            if not above[other]:
                ready.append(other)
    return rows


def _wide(each: object) -> float:
    return PASSAGE if isinstance(each, Passage) else WIDTH


def _width(row: Sequence[object]) -> float:
    return sum(_wide(each) + GAP_X for each in row) - GAP_X if row else WIDTH


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
