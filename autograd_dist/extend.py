"""For those who put an agent together: the parts that make it answer gradients."""

from .backward import backward_from, serve_passes
from .contexts import Contexts
from .interceptor import AutogradInterceptor
from .optimizer import StepQueue

__all__ = ["AutogradInterceptor", "Contexts", "StepQueue", "backward_from", "serve_passes"]
