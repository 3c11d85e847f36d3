"""Interface for composition roots and for other libraries: the parts of an agent's distributed autograd, and its graph."""

from .api import backward_from as backward_from
from .contexts import Contexts as Contexts
from .contexts import current_context as current_context
from .contexts import serve_passes as serve_passes
from .edges import as_tensor as as_tensor
from .edges import edge_of as edge_of
from .graph import ContextGraph as ContextGraph
from .graph import current_gatherer as current_gatherer
from .interceptor import AutogradInterceptor as AutogradInterceptor
from .outside import OutsideContext as OutsideContext
from .parameter_trees import Parameters as Parameters
from .step_queue import StepQueue as StepQueue
from .step_requests import serve_steps as serve_steps
