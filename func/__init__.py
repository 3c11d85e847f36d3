"""Transforms of functions (``torch.func``): derivatives, vectorization, and modules as functions.

Each takes a function of tensors, or of dicts, lists and tuples of them, and returns another function. They nest: the derivative
of a derivative, or of a ``vmap``, is one more call.
"""

from ..nn import utils
from .gradients import grad, grad_and_value, vjp
from .jacobians import hessian, jacfwd, jacrev
from .stacking import stack_module_state
from .tangents import jvp, linearize
from .vectorizing import vmap

functional_call = utils.functional_call

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
