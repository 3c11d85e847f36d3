"""Functions of JAX as nodes of distributed autograd. Importing this module imports JAX.

JAX has no graph: ``call`` runs a function and records it as one node, which ``jax.vjp`` differentiates.
"""

from ..autograd_dist.extend import Parameters
from .jax_calls import call

__all__ = ["Parameters", "call"]
