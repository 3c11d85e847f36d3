"""Graph of a context on one worker as data that can be sent, for pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.extend import AccumulateGrad, Node, Tensor, gradient_edge, node_label, nodes_below
from ..rpc.extend import current_agent
from ..rref import RRef
from .contexts import contexts_of
from .graph import ReceiveNode, SendNode, sender_of


@dataclass
class PartNode:
    """Node of a worker's graph.

    Attributes:
        kind: "leaf", "operation", "send" or "receive".
        label: two lines of text.
        below: numbers of the nodes to which its gradients go.
        message_id: id of the message of a send or receive node; 0 for other nodes.
    """

    kind: str
    label: tuple[str, str]
    below: list[int]
    message_id: int = 0


@dataclass
class GraphPart:
    """Graph of a context on one worker.

    Attributes:
        worker: name of the worker.
        nodes: the nodes, each before those to which its gradients go.
        others: numbers of the workers from which it got messages, or to which it sent some.
    """

    worker: str
    nodes: list[PartNode] = field(default_factory=list)
    others: set[int] = field(default_factory=set)


def describe_part(context_id: int, names: Mapping[str, RRef], roots: Sequence[Tensor] = ()) -> GraphPart:
    """Return this worker's part of a context's graph.

    Args:
        context_id: the context.
        names: references to leaves of this worker, by the names to show.
        roots: results of this worker whose graphs are shown too.

    Raises:
        RpcError: there is no such context here.
        TypeError: a reference does not refer to a tensor.
    """
    agent = current_agent()
    graph = contexts_of(agent).find(context_id).graph
    sends, receives = graph.send_nodes(), graph.receive_nodes()
    edges = [gradient_edge(root) for root in roots]
    nodes = nodes_below([*dict.fromkeys(edge[0] for edge in edges if edge), *sends])
    numbers = {node: number for number, node in enumerate(nodes)}
    named = {id(_leaf(name, reference)): name for name, reference in names.items()}
    part = GraphPart(agent.name, [_describe(node, numbers, named) for node in nodes])
    part.others = {node.receiver for node in sends} | {node.sender for node in receives}
    return part


def _leaf(name: str, reference: RRef) -> Tensor:
    value = reference.local_value()
    if not isinstance(value, Tensor):
        raise TypeError(
            f"params[{name!r}] must be a tensor or a reference to one; you gave one to a {type(value).__name__}"
        )
    return value


def _describe(node: Node, numbers: Mapping[Node, int], named: Mapping[int, str]) -> PartNode:
    below = [numbers[edge[0]] for edge in node.next_edges if edge is not None]
    if isinstance(node, SendNode):
        return PartNode("send", ("send", f"to {_name(node.receiver)}"), below, node.message_id)
    if isinstance(node, ReceiveNode):
        return PartNode("receive", ("receive", f"from {_name(sender_of(node.message_id))}"), below, node.message_id)
    if isinstance(node, AccumulateGrad):
        name, detail = node_label(node, {})
        return PartNode("leaf", (named.get(id(node.variable), name), detail), below)
    return PartNode("operation", node_label(node, {}), below)


def _name(worker: int) -> str:
    return current_agent().peers.at(worker).info.name
