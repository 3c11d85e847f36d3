"""Interface for composition roots: the parts with which an agent has distributed autograd."""

from .api import backward_from
from .contexts import Contexts, serve_passes
from .interceptor import AutogradInterceptor
from .outside import OutsideContext
from .step_queue import StepQueue
from .step_requests import serve_steps

__all__ = [
    "AutogradInterceptor",
    "Contexts",
    "OutsideContext",
    "StepQueue",
    "backward_from",
    "serve_passes",
    "serve_steps",
]
