"""``draw``: a picture of a graph, as graphviz source and as SVG; for the SVG nothing need be installed.

Results are at the top, leaves at the bottom. The layout is a short form of that of Sugiyama et al. (1981): each node is in a
layer below all nodes that use it, and within the layer near the middle of those.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ..tensors import Tensor
from .accumulate import AccumulateGrad
from .edges import gradient_edge
from .node import Node

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 150, 44, 26, 40, 20
COLOURS = {"leaf": "#DCEBF7", "operation": "#F3F3F3", "result": "#FCE8D5"}


class Picture:
    """The nodes of a graph in layers, with their labels."""

    def __init__(self, roots: Sequence[Node], names: Mapping[Node, str]) -> None:
        self.roots = roots
        self.names = names
        self.nodes = nodes_below(roots)
        self.layers = _layers(roots, self.nodes)

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
        widest = max(len(layer) for layer in self.layers)
        width = widest * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
        height = len(self.layers) * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
        places = {}
        for depth, layer in enumerate(self.layers):
            left = (width - len(layer) * (WIDTH + GAP_X) + GAP_X) / 2
            for number, node in enumerate(layer):
                places[node] = (left + number * (WIDTH + GAP_X), MARGIN + depth * (HEIGHT + GAP_Y))
        lines = [svg_curve(places[one], places[other]) for one, other in self.edges()]
        boxes = [svg_box(places[node], node_label(node, self.names), COLOURS[self.kind(node)]) for node in self.nodes]
        return svg_page(width, height, [*lines, *boxes])


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


def _layers(roots: Sequence[Node], nodes: Sequence[Node]) -> list[list[Node]]:
    depth = dict.fromkeys(nodes, 0)
    above: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for edge in node.next_edges:
            if edge is not None:
                depth[edge[0]] = max(depth[edge[0]], depth[node] + 1)
                above[edge[0]].append(node)
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for node in nodes:
        layers[depth[node]].append(node)
    place: dict[Node, float] = {}
    for layer in layers:
        middle = {node: sum(place[user] for user in above[node]) / len(above[node]) for node in layer if above[node]}
        layer.sort(key=lambda node: middle.get(node, 0.0))
        place.update({node: number - (len(layer) - 1) / 2 for number, node in enumerate(layer)})
    return layers


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


def svg_curve(one: tuple[float, float], other: tuple[float, float], colour: str = "#777") -> str:
    """Return an arrow from the lower edge of a box to the upper edge of another.

    Args:
        one: the upper left corner of the first box.
        other: that of the second.
        colour: of the arrow.
    """
    x1, y1, x2, y2 = one[0] + WIDTH / 2, one[1] + HEIGHT, other[0] + WIDTH / 2, other[1]
    bend = max((y2 - y1) / 2, 12)
    path = f"M{x1:g},{y1:g} C{x1:g},{y1 + bend:g} {x2:g},{y2 - bend:g} {x2:g},{y2 - 5:g}"
    tip = f"M{x2 - 4:g},{y2 - 7:g} L{x2:g},{y2:g} L{x2 + 4:g},{y2 - 7:g} Z"
    return f'<path d="{path}" fill="none" stroke="{colour}"/><path d="{tip}" fill="{colour}"/>'


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
