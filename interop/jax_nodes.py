"""``CallNode``: the node of a call of JAX, which ``jax.vjp`` differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import jax
import numpy as np

from ..autograd_dist.extend import Parameters, current_gatherer
from ..base.errors import AutogradError
from ..core.extend import AccumulateGrad, Array, Edge, Node, Tensor, profiles
from ..core.profiler import record_function

Target: TypeAlias = "Parameters | Edge"  # where the gradient of an argument goes


class CallNode(Node):
    """Node of one call. Its outputs are the results that have gradients.

    Args:
        compiled: the function.
        pull: what ``compiled.pull`` needs: values that the forward saved.
        results: the results.
        structure: form of the tree of results.
        targets: for each argument with a gradient, the parameters, or where the gradient goes on.
    """

    __slots__ = ("_compiled", "_kinds", "_pull", "_structure", "_targets")

    def __init__(self, compiled: Any, pull: Any, results: list[Any], structure: Any, targets: list[Target]) -> None:
        super().__init__(tuple(each for each in targets if not isinstance(each, Parameters)), len(results))
        self._compiled = compiled
        self._pull = pull
        self._kinds = [(array.shape, array.dtype) for array in results]
        self._structure = structure
        self._targets = targets

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Compute all gradients. Give parameters theirs, and return the others."""
        if all(grad is None for grad in grads):
            return [None] * len(self.next_edges)
        gatherer = current_gatherer.get()
        if gatherer is None:
            raise AutogradError(
                "this graph goes through a function of JAX; call autograd_dist.backward(context_id, [loss]) instead of "
                "loss.backward()"
            )
        if self._pull is None:
            raise AutogradError(
                f"{self.name()} was differentiated before, and what it saved is freed; give retain_graph=True to the "
                "first backward"
            )
        given = [_gradient(grad, *kind) for grad, kind in zip(grads, self._kinds)]
        with record_function(self.name()) if profiles.get() else nullcontext():
            found = self._compiled.pull(self._pull, jax.tree.unflatten(self._structure, given))
        passed = []
        for target, gradient in zip(self._targets, found):
            if isinstance(target, Parameters):
                gatherer.accumulate(target, gradient)
            else:
                passed.append(_array(gradient, type(target[0]) is AccumulateGrad))
        return passed

    def release(self) -> None:
        """Free what the forward saved."""
        self._pull = None

    def name(self) -> str:
        """Return the name of the call in pictures and errors."""
        return f"JAX ({self._compiled.name})"


def _gradient(grad: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the gradient of a result, of its dtype; zeros if none came."""
    if grad is None:
        return np.zeros(shape, dtype)
    if isinstance(grad, Tensor):  # a sparse one, of a table that was looked up
        grad = grad.to_dense().numpy()
    return np.asarray(grad, dtype)


def _array(gradient: Any, own: bool) -> Array:
    """Return a gradient as an array. Narrow types travel as float32, in which they are added up.

    Args:
        gradient: an array of JAX.
        own: whether a leaf gets it, whose optimizer may write into it.
    """
    array = np.asarray(gradient)
    if array.dtype.type.__module__ != "numpy":
        array = array.astype(np.float32)
    return array.copy() if own else array
