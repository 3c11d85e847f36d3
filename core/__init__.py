"""The lowest layer: errors, futures, tensors, operations and autograd. It does not know the network."""

from . import autograd as autograd
from . import fft as fft
from . import linalg as linalg
from . import masked as masked
from . import ops as ops
from . import special as special
from .autograd import Function as Function
from .autograd import enable_grad as enable_grad
from .autograd import inference_mode as inference_mode
from .autograd import is_grad_enabled as is_grad_enabled
from .autograd import is_inference_mode_enabled as is_inference_mode_enabled
from .autograd import no_grad as no_grad
from .autograd import set_grad_enabled as set_grad_enabled
from .functions import *  # noqa: F403
from .tensors import Tensor as Tensor
