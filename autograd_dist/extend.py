"""Interface for composition roots and for other libraries: the parts of an agent's distributed autograd, and its graph."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .current_context import current_context as current_context
from .numbers import GRADIENT_EXTRA as GRADIENT_EXTRA
from .numbers import GradientMethod as GradientMethod
from .numbers import GradientTopic as GradientTopic
from .outside import OutsideContext as OutsideContext

if TYPE_CHECKING:
    from .api import backward_from as backward_from
    from .captured.parts import CapturedParts as CapturedParts
    from .contexts import Contexts as Contexts
    from .edges import as_tensor as as_tensor
    from .edges import edge_of as edge_of
    from .graph import ContextGraph as ContextGraph
    from .graph import current_gatherer as current_gatherer
    from .parameter_trees import Parameters as Parameters
    from .parts import serve_gradients as serve_gradients
else:
    __getattr__ = late_imports(
        __name__,
        {
            "backward_from": "..api",
            "CapturedParts": "..captured.parts",
            "Contexts": "..contexts",
            "as_tensor": "..edges",
            "edge_of": "..edges",
            "ContextGraph": "..graph",
            "current_gatherer": "..graph",
            "Parameters": "..parameter_trees",
            "serve_gradients": "..parts",
        },
    )
