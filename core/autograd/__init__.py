"""Automatic differentiation: nodes and edges, the engine that runs them backward, and the functions of users."""

from typing import TYPE_CHECKING

from ...base.late_imports import late_imports
from . import forward_ad
from .anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from .edges import attach, gradient_edge
from .engine import GraphTask
from .forward import push_forward
from .function import Function, once_differentiable
from .function_context import FunctionContext
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .gradients import backward, grad
from .node import Edge, Node
from .reached import reached
from .variable import Variable

if TYPE_CHECKING:
    from . import functional, graph, profiler
    from .checkpointing import checkpoint, checkpoint_sequential
    from .gradient_check import GradcheckError, gradcheck, gradgradcheck
else:
    __getattr__ = late_imports(
        __name__,
        {
            **{module: f".{module}" for module in ("functional", "graph", "profiler")},
            **dict.fromkeys(("checkpoint", "checkpoint_sequential"), ".checkpointing"),
            **dict.fromkeys(("GradcheckError", "gradcheck", "gradgradcheck"), ".gradient_check"),
        },
    )

__all__ = [
    "Edge",
    "Function",
    "FunctionContext",
    "GradcheckError",
    "GraphTask",
    "Node",
    "Variable",
    "attach",
    "checkpoint",
    "checkpoint_sequential",
    "detect_anomaly",
    "forward_ad",
    "functional",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "is_inference_mode_enabled",
    "set_detect_anomaly",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "gradient_edge",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "once_differentiable",
    "push_forward",
    "reached",
    "set_grad_enabled",
]
