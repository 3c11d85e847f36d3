"""``draw``: a picture of a graph, as graphviz source and as SVG; for the SVG nothing need be installed.

Results are at the top, leaves at the bottom.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ..tensors import Tensor
from .accumulate import AccumulateGrad
from .edges import gradient_edge
from .layout import HEIGHT, WIDTH, Layout, Way
from .node import Node

MARGIN = 20
COLOURS = {"leaf": "#DCEBF7", "operation": "#F3F3F3", "result": "#FCE8D5"}


class Picture:
    """The nodes of a graph, with their labels."""

    def __init__(self, roots: Sequence[Node], names: Mapping[Node, str]) -> None:
        self.roots = roots
        self.names = names
        self.nodes = nodes_below(roots)

    def edges(self) -> Iterable[tuple[Node, Node]]:
        """Yield the pairs (node, node that its gradients go to)."""
        for node in self.nodes:
            for edge in node.next_edges:
                if edge is not None:
                    yield node, edge[0]

    def kind(self, node: Node) -> str:
        """Return the kind of a node, which decides its colour."""
        return "leaf" if isinstance(node, AccumulateGrad) else "result" if node in self.roots else "operation"

    def dot(self) -> str:
        """Return the graphviz source."""
        numbers = {node: number for number, node in enumerate(self.nodes)}
        lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
        for node, number in numbers.items():
            text = "\\n".join(part.replace('"', "'") for part in node_label(node, self.names) if part)
            lines.append(f'  n{number} [label="{text}", fillcolor="{COLOURS[self.kind(node)]}"];')
        lines += [f"  n{numbers[one]} -> n{numbers[other]};" for one, other in self.edges()]
        return "\n".join([*lines, "}", ""])

    def svg(self) -> str:
        """Return the picture as SVG."""
        edges = list(dict.fromkeys(self.edges()))
        layout = Layout(self.nodes, edges, corner=(MARGIN, MARGIN))
        left, width = layout.frames[None]
        curves = [svg_curve(layout.way(one, other)) for one, other in edges]
        labels = {node: node_label(node, self.names) for node in self.nodes}
        boxes = [svg_box(layout.place(node), label, COLOURS[self.kind(node)]) for node, label in labels.items()]
        return svg_page(left + width + MARGIN, layout.bottom + MARGIN, [*curves, *boxes])


def draw(
    tensor: Tensor | Sequence[Tensor],
    path: str | os.PathLike[str] | None = None,
    params: Mapping[str, Tensor] | None = None,
) -> str:
    """Draw the graph that ``tensor`` (or several) came from.

    Args:
        tensor: results of recorded operations.
        path: a file to write: the picture if the name ends with ".svg", else the graphviz source.
        params: names of leaves, as ``dict(model.named_parameters())`` gives them.

    Returns:
        The graphviz source.

    Raises:
        ValueError: a tensor has no graph.
    """
    results = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    for number, result in enumerate(results):
        if result.grad_fn is None:
            raise ValueError(f"tensor {number} is not the result of a recorded operation, so there is no graph to draw")
    roots = list(dict.fromkeys(result.grad_fn for result in results if result.grad_fn is not None))
    names = {edge[0]: name for name, leaf in (params or {}).items() if (edge := gradient_edge(leaf)) is not None}
    picture = Picture(roots, names)
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture.svg() if os.fspath(path).endswith(".svg") else picture.dot())
    return picture.dot()


def nodes_below(roots: Sequence[Node]) -> list[Node]:
    """Return all nodes, each before those that its gradients go to."""
    pending: dict[Node, int] = dict.fromkeys(roots, 0)
    stack = list(pending)
    while stack:
        for edge in stack.pop().next_edges:
            if edge is not None:
                if edge[0] not in pending:
                    pending[edge[0]] = 0
                    stack.append(edge[0])
                pending[edge[0]] += 1
    ready, order = [node for node, count in pending.items() if not count], []
    while ready:
        order.append(ready.pop())
        for edge in order[-1].next_edges:
            if edge is not None:
                pending[edge[0]] -= 1
                if not pending[edge[0]]:
                    ready.append(edge[0])
    return order


def node_label(node: Node, names: Mapping[Node, str]) -> tuple[str, str]:
    """Return the two lines of a node's box: a name, and sizes."""
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        return names.get(node, "leaf"), f"{tuple(leaf.shape)} {leaf.dtype}"
    arrays = [entry[0] for entry in getattr(node, "saved", None) or () if entry is not None]
    size = sum(getattr(array, "nbytes", 0) for array in arrays)
    return node.name().removesuffix("Backward"), f"saves {_bytes(size)}" if size else ""


def svg_page(width: float, height: float, elements: Iterable[str]) -> str:
    """Return a picture of some elements, on white.

    Args:
        width: in pixels.
        height: in pixels.
        elements: SVG, in the order in which it is drawn.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" text-anchor="middle">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *elements, "</svg>", ""])


def svg_box(place: tuple[float, float], label: tuple[str, str], colour: str) -> str:
    """Return a box of a node.

    Args:
        place: its upper left corner.
        label: its two lines.
        colour: its background.
    """
    from html import escape  # brings a table of all of HTML's names, which only a picture needs

    x, y = place
    name, detail = (escape(part) for part in label)
    middle = x + WIDTH / 2
    up = y + (HEIGHT / 2 - 2 if detail else HEIGHT / 2 + 5)
    text = f'<text x="{middle:g}" y="{up:g}" font-size="13" fill="#222">{name}</text>'
    if detail:
        text += f'<text x="{middle:g}" y="{y + HEIGHT - 9:g}" font-size="10" fill="#666">{detail}</text>'
    box = f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="7" fill="{colour}" stroke="#999"/>'
    return box + text


def svg_curve(way: Way, colour: str = "#777") -> str:
    """Return an arrow; without a tip if it joins another one.

    Args:
        way: its way.
        colour: its colour.
    """
    (x1, y1), *others = way.points
    path = f"M{x1:g},{y1:g}"
    for number, (x2, y2) in enumerate(others, 1):
        bend, end = max((y2 - y1) / 2, 12), y2 - 5 if way.arrives and number == len(others) else y2
        path += f" C{x1:g},{y1 + bend:g} {x2:g},{y2 - bend:g} {x2:g},{end:g}" if number % 2 else f" L{x2:g},{y2:g}"
        x1, y1 = x2, y2
    tip = f'<path d="M{x1 - 4:g},{y1 - 7:g} L{x1:g},{y1:g} L{x1 + 4:g},{y1 - 7:g} Z" fill="{colour}"/>'
    return f'<path d="{path}" fill="none" stroke="{colour}"/>' + tip * way.arrives


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
