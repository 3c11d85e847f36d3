"""The tape: nodes and edges, the engine that runs them backward, and what users do with it."""

# Order matters once: the tensor class needs nodes and modes, the engine needs the tensor class.
from . import node as _node  # isort: skip
from .engine import GraphTask
from .grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .graph import attach, gradient_edge
from .node import Edge, Node
from .passes import backward, grad

__all__ = [
    "Edge",
    "GraphTask",
    "Node",
    "attach",
    "backward",
    "enable_grad",
    "grad",
    "gradient_edge",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
