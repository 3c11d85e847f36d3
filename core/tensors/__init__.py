"""``Tensor`` and its parts: state, questions about its array, copies, shared memory and printing."""

from .tensor import Operand, Tensor

__all__ = ["Operand", "Tensor"]
