"""``draw``: a picture of the graph of a context, on all workers that it reached.

Each worker is a box of its own; results are at the top, leaves at the bottom, and an edge from worker to worker is a message
whose tensors require grad. A node is in a row below all nodes that use it, also those on other workers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..core.extend import BOX_HEIGHT, BOX_WIDTH, Tensor, svg_box, svg_curve, svg_page
from ..core.futures import wait_all
from ..rpc.extend import UNSET_RPC_TIMEOUT, Agent, call_function, current_agent
from ..rref import RRef
from .contexts import contexts_of, current_context
from .graph_parts import Part, describe_part

COLOURS = {"leaf": "#DCEBF7", "operation": "#F3F3F3", "send": "#E4F2E1", "receive": "#FCE8D5"}
GAP_X, GAP_Y, MARGIN, TITLE = 20, 34, 18, 30
Place: TypeAlias = tuple[int, int]  # rank of a worker, and number of a node there


def draw(
    context_id: int,
    path: str | os.PathLike[str] | None = None,
    params: Mapping[str, Tensor | RRef] | None = None,
    roots: Sequence[Tensor] = (),
) -> str:
    """Draw the graph that a context has recorded on all workers: each a box, with messages as edges between them.

    Args:
        context_id: the id that ``autograd_dist.context()`` gave.
        path: a file to write the picture to, as SVG.
        params: leaves by the names to show: tensors of this worker, or references to leaves of others.
        roots: results of this worker, losses say, whose graphs belong to the picture; the context knows of what was sent.

    Returns:
        The picture: SVG.

    Raises:
        RpcError: there is no such context.
        TypeError: a value of ``params`` is neither a tensor nor a reference to one; or ``roots`` is no list of tensors.
        WorkerLostError: a worker of the context is lost.
    """
    agent = current_agent()
    contexts_of(agent).find(context_id)
    if isinstance(roots, Tensor) or not all(isinstance(root, Tensor) for root in roots):
        raise TypeError("roots must be a list of tensors; write draw(context_id, path, params, [loss])")
    token = current_context.set(None)  # the calls that gather it are no part of it
    try:
        parts = _gather(agent, context_id, _by_owner(agent, params or {}), roots)
    finally:
        current_context.reset(token)
    picture = Layout(parts).svg()
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture)
    return picture


def _by_owner(agent: Agent, params: Mapping[str, Tensor | RRef]) -> dict[int, dict[str, RRef]]:
    if not isinstance(params, Mapping):
        raise TypeError(f"params must be a dictionary of leaves by name; you gave {type(params).__name__}")
    owners: dict[int, dict[str, RRef]] = {}
    for name, leaf in params.items():
        if not isinstance(leaf, (Tensor, RRef)):
            raise TypeError(f"params[{name!r}] must be a tensor or an RRef; you gave {type(leaf).__name__}")
        reference = RRef(leaf) if isinstance(leaf, Tensor) else leaf
        owners.setdefault(reference.owner().id, {})[name] = reference
    return owners


def _gather(
    agent: Agent, context_id: int, names: dict[int, dict[str, RRef]], roots: Sequence[Tensor]
) -> dict[int, Part]:
    """Return the parts of all workers that messages of the context link with this one, by rank."""
    parts = {agent.rank: describe_part(context_id, names.get(agent.rank, {}), roots)}
    while missing := sorted({rank for part in parts.values() for rank in part.others} - parts.keys()):
        calls = [
            call_function(agent, rank, describe_part, (context_id, names.get(rank, {})), None, UNSET_RPC_TIMEOUT)
            for rank in missing
        ]
        parts.update(zip(missing, wait_all(calls)))
    return dict(sorted(parts.items()))


class Layout:
    """Places of the nodes of all workers in one picture.

    Args:
        parts: the graphs, by rank.
    """

    def __init__(self, parts: dict[int, Part]) -> None:
        self.parts = parts
        self.edges = self._edges()
        self.rows = self._rows()
        self.in_row: dict[tuple[int, int], int] = {}  # number of nodes, by rank and row
        self.columns = self._columns()
        self.lefts, self.width = self._lefts()
        self.height = MARGIN * 2 + TITLE + (max(self.rows.values(), default=0) + 1) * (BOX_HEIGHT + GAP_Y)

    def svg(self) -> str:
        """Return the picture."""
        places = {node: self._place(node) for node in self.rows}
        lines: list[str] = [_worker_box(part.worker, *self._frame(rank)) for rank, part in self.parts.items()]
        lines += [
            svg_curve(places[one], places[other], "#C0504D" if one[0] != other[0] else "#777")
            for one, other in self.edges
        ]
        for (rank, number), place in places.items():
            node = self.parts[rank].nodes[number]
            lines.append(svg_box(place, node.label, COLOURS[node.kind]))
        return svg_page(self.width, self.height, lines)

    def _edges(self) -> list[tuple[Place, Place]]:
        """Return the pairs (node, node that its gradients go to), those of messages from worker to worker too."""
        sends = {
            node.message_id: (rank, number)
            for rank, part in self.parts.items()
            for number, node in enumerate(part.nodes)
            if node.kind == "send"
        }
        edges = []
        for rank, part in self.parts.items():
            for number, node in enumerate(part.nodes):
                edges += [((rank, number), (rank, below)) for below in node.below]
                if node.kind == "receive" and node.message_id in sends:
                    edges.append(((rank, number), sends[node.message_id]))
        return edges

    def _rows(self) -> dict[Place, int]:
        """Return the row of each node: one more than the lowest of those that lead to it."""
        rows = {(rank, number): 0 for rank, part in self.parts.items() for number in range(len(part.nodes))}
        below: dict[Place, list[Place]] = {node: [] for node in rows}
        above = dict.fromkeys(rows, 0)
        for one, other in self.edges:
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

    def _columns(self) -> dict[Place, int]:
        """Return the column of each node in the box of its worker."""
        columns: dict[Place, int] = {}
        for node, row in self.rows.items():
            columns[node] = self.in_row.get((node[0], row), 0)
            self.in_row[node[0], row] = columns[node] + 1
        return columns

    def _lefts(self) -> tuple[dict[int, float], float]:
        """Return the left edge of each worker's box, and the width of the picture."""
        lefts, at = {}, float(MARGIN)
        for rank in self.parts:
            lefts[rank] = at
            at += self._frame_width(rank) + MARGIN
        return lefts, at

    def _frame_width(self, rank: int) -> float:
        widest = max((count for (worker, _), count in self.in_row.items() if worker == rank), default=1)
        return widest * (BOX_WIDTH + GAP_X) + GAP_X

    def _frame(self, rank: int) -> tuple[float, float, float, float]:
        return self.lefts[rank], MARGIN, self._frame_width(rank), self.height - 2 * MARGIN

    def _place(self, node: Place) -> tuple[float, float]:
        rank, row = node[0], self.rows[node]
        free = self._frame_width(rank) - self.in_row[rank, row] * (BOX_WIDTH + GAP_X) + GAP_X
        left = self.lefts[rank] + free / 2 + self.columns[node] * (BOX_WIDTH + GAP_X)
        return left, MARGIN + TITLE + row * (BOX_HEIGHT + GAP_Y)


def _worker_box(name: str, x: float, y: float, width: float, height: float) -> str:
    from html import escape  # brings a table of all of HTML's names, which only a picture needs

    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="12" fill="#FAFAFA" stroke="#BBB"/>'
    return box + f'<text x="{x + width / 2:g}" y="{y + 20:g}" font-size="14" font-weight="bold">{escape(name)}</text>'
