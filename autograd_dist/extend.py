"""For those who put an agent together: the parts that make it answer gradients."""

from .api import backward_from
from .contexts import Contexts, serve_passes
from .interceptor import AutogradInterceptor
from .step_queue import StepQueue

__all__ = ["AutogradInterceptor", "Contexts", "StepQueue", "backward_from", "serve_passes"]
