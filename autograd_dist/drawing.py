"""``draw``: a picture of the graph of a context, on all workers that it reached.

Each worker is a box. Results are at the top, leaves at the bottom. An edge from worker to worker is a message whose tensors
require grad. A node is in a row below all nodes that use it, also below those on other workers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TypeAlias

from ..base.arguments import check_type
from ..core.extend import Layout, Tensor, svg_box, svg_curve, svg_page
from ..core.futures import wait_all
from ..rpc.extend import UNSET_RPC_TIMEOUT, Agent, call_function, current_agent
from ..rref import RRef
from .contexts import contexts_of
from .current_context import current_context
from .graph_parts import GraphPart, describe_part

NODE_COLOURS = {"leaf": "#DCEBF7", "operation": "#F3F3F3", "send": "#E4F2E1", "receive": "#FCE8D5"}
MARGIN, PADDING, TITLE = 18, 20, 30
Place: TypeAlias = tuple[int, int]  # number of a worker, and number of a node there


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
        roots: results of this worker, such as a loss, whose graphs belong to the picture. The context itself knows only the
            graphs of tensors that were sent.

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
    check_type("path", path, (str, os.PathLike, NoneType), "that of a file to write")
    token = current_context.set(None)  # the calls that gather the graph must not be part of it
    try:
        parts = _gather(agent, context_id, _by_owner(agent, params or {}), roots)
    finally:
        current_context.reset(token)
    picture = svg_of(parts)
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
        owners.setdefault(agent.peers.find(reference.owner()).number, {})[name] = reference
    return owners


def _gather(
    agent: Agent, context_id: int, names: dict[int, dict[str, RRef]], roots: Sequence[Tensor]
) -> dict[int, GraphPart]:
    """Return the parts of all workers that messages of the context link with this one, by number."""
    parts = {agent.number: describe_part(context_id, names.get(agent.number, {}), roots)}
    while missing := sorted({worker for part in parts.values() for worker in part.others} - parts.keys()):
        calls = [
            call_function(agent, peer, describe_part, (context_id, names.get(peer.number, {})), None, UNSET_RPC_TIMEOUT)
            for peer in map(agent.peers.at, missing)
        ]
        parts.update(zip(missing, wait_all(calls)))
    return dict(sorted(parts.items()))


def svg_of(parts: Mapping[int, GraphPart]) -> str:
    """Return the picture of the graphs of some workers, by number: SVG."""
    edges = edges_of(parts)
    places = [(worker, number) for worker, part in parts.items() for number in range(len(part.nodes))]
    corner = MARGIN + PADDING, MARGIN + TITLE
    layout = Layout(places, edges, lambda place: place[0], corner, MARGIN + 2 * PADDING, parts)
    lines, right = [], 0.0
    for worker, (left, width) in layout.frames.items():
        right = left + width + PADDING
        lines.append(_worker_box(parts[worker].worker, left - PADDING, right, layout.bottom + PADDING))
    for one, other in edges:
        lines.append(svg_curve(layout.way(one, other), "#C0504D" if one[0] != other[0] else "#777"))
    for worker, number in places:
        node = parts[worker].nodes[number]
        lines.append(svg_box(layout.place((worker, number)), node.label, NODE_COLOURS[node.kind]))
    return svg_page(right + MARGIN, layout.bottom + PADDING + MARGIN, lines)


def edges_of(parts: Mapping[int, GraphPart]) -> list[tuple[Place, Place]]:
    """Return the pairs (node, node to which its gradients go), also those of messages from worker to worker."""
    sends = {
        node.message_id: (worker, number)
        for worker, part in parts.items()
        for number, node in enumerate(part.nodes)
        if node.kind == "send"
    }
    edges: list[tuple[Place, Place]] = []
    for worker, part in parts.items():
        for number, node in enumerate(part.nodes):
            edges += [((worker, number), (worker, below)) for below in dict.fromkeys(node.below)]
            if node.kind == "receive" and node.message_id in sends:
                edges.append(((worker, number), sends[node.message_id]))
    return edges


def _worker_box(name: str, left: float, right: float, bottom: float) -> str:
    from html import escape  # here, because it loads a table of all of HTML's names, which only a picture needs

    size = f'width="{right - left:g}" height="{bottom - MARGIN:g}"'
    box = f'<rect x="{left:g}" y="{MARGIN}" {size} rx="12" fill="#FAFAFA" stroke="#BBB"/>'
    middle = (left + right) / 2
    return box + f'<text x="{middle:g}" y="{MARGIN + 20}" font-size="14" font-weight="bold">{escape(name)}</text>'
