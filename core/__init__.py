"""Floor 0: errors, futures, tensors and autograd. Knows no network."""

from . import autograd as autograd
from . import fft as fft
from . import linalg as linalg
from . import ops as ops
from . import special as special
from .autograd import Function as Function
from .autograd import enable_grad as enable_grad
from .autograd import is_grad_enabled as is_grad_enabled
from .autograd import no_grad as no_grad
from .autograd import set_grad_enabled as set_grad_enabled
from .creation import tensor as tensor  # by name, because a module has the same
from .functions import *  # noqa: F403
from .memory import keep_freed_memory
from .tensors import Tensor as Tensor

keep_freed_memory()
