"""Floor 0: errors, futures, tensors and autograd. Knows no network."""

from . import autograd, ops
from .creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .tensor import Tensor

__all__ = [
    "Tensor",
    "arange",
    "as_tensor",
    "autograd",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "ops",
    "tensor",
    "zeros",
    "zeros_like",
]
