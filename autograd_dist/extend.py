"""Interface for composition roots and for other libraries: the parts of an agent's distributed autograd, and its graph."""

from .api import backward_from
from .contexts import Contexts, current_context, serve_passes
from .edges import as_tensor, edge_of
from .graph import ContextGraph, current_gatherer
from .interceptor import AutogradInterceptor
from .outside import OutsideContext
from .parameter_trees import Parameters
from .step_queue import StepQueue
from .step_requests import serve_steps

__all__ = [
    "AutogradInterceptor",
    "ContextGraph",
    "Contexts",
    "OutsideContext",
    "Parameters",
    "StepQueue",
    "as_tensor",
    "backward_from",
    "current_context",
    "current_gatherer",
    "edge_of",
    "serve_passes",
    "serve_steps",
]
