"""Other array libraries in one graph: their arrays as one another's, and functions of JAX as nodes (``telegrad.interop.jax``).

Nothing here imports another library before the program asks for it.
"""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .conversion import convert

__all__ = ["convert", "jax"]

if TYPE_CHECKING:
    from . import jax as jax
else:
    __getattr__ = late_imports(__name__, {"jax": ".jax"})
