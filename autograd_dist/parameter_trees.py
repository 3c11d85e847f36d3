"""``Parameters``: a tree of JAX's arrays that is a leaf of distributed autograd. Nothing here imports JAX before it is made."""

from __future__ import annotations

import operator
from typing import Any


class Parameters:
    """Parameters of a function of JAX: a pytree of arrays. An optimizer replaces the tree, because JAX's arrays do not change.

    Calls that read the tree before a step differentiate with the arrays that they read.

    Args:
        tree: dicts, lists, tuples and other pytrees, of ``jax.Array``s or arrays of NumPy, of floating or complex numbers. A
            single array is a tree, too.

    Attributes:
        tree: the arrays now.
        grad: a tree of gradients, of the same form, while an optimizer steps.

    Raises:
        TypeError: a part of the tree is no array of such numbers; the error says which.
    """

    def __init__(self, tree: Any) -> None:
        import jax

        self.tree = jax.tree_util.tree_map_with_path(_as_parameter, tree)
        self.grad: Any = None

    def sum(self, first: Any, second: Any) -> Any:
        """Return the sum of two trees of the form of this one."""
        import jax

        return jax.tree.map(operator.add, first, second)

    def __repr__(self) -> str:
        import jax

        shapes = jax.tree.map(lambda array: f"{array.dtype}{list(array.shape)}", self.tree)
        return f"Parameters({shapes})"


def _as_parameter(path: Any, value: Any) -> Any:
    import jax

    where = f"tree{jax.tree_util.keystr(path)}"
    try:
        array = jax.numpy.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where} must be an array; you gave {type(value).__name__}") from error
    if not jax.numpy.issubdtype(array.dtype, jax.numpy.inexact):
        raise TypeError(
            f"{where} must have floating or complex numbers; it is of {array.dtype}. Give it to the function as an argument of "
            "its own"
        )
    return array
