"""Products of a Jacobian with vectors of the inputs (forward mode), out of two backward passes.

The vector-Jacobian product is linear in its vector, so differentiating it by that vector gives the other product. Every
operation that has a second derivative has forward mode, without rules of its own.
(https://j-towns.github.io/2017/06/12/A-new-trick.html)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..tensors import Tensor
from .gradients import grad

Push = Callable[[Sequence[Tensor], bool], tuple[Tensor, ...]]


def push_forward(outputs: Sequence[Tensor], inputs: Sequence[Tensor], strict: bool = False) -> Push:
    """Return the function of tangents (of the inputs' shapes) and ``create_graph`` that gives the tangents of the outputs.

    It can be called any number of times.

    Args:
        outputs: tensors of the graph above the inputs; it must not be freed.
        inputs: tensors that require gradients.
        strict: raise where an input takes no part, instead of taking its derivative for 0.

    Raises:
        AutogradError: ``strict``, and an input takes no part.
    """
    reached = [output for output in outputs if output.requires_grad]
    doubles = [Tensor(np.zeros(output.shape, output.dtype), True) for output in reached]
    left: Sequence[Tensor] = ()
    if reached:
        options = {"allow_unused": not strict, "materialize_grads": not strict}
        left = grad(reached, inputs, doubles, create_graph=True, **options)

    def push(tangents: Sequence[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
        used = [(side, tangent) for side, tangent in zip(left, tangents) if side.requires_grad]
        found: dict[int, Tensor] = {}
        if used:
            sides, vectors = zip(*used)
            products = grad(
                sides, doubles, vectors, True, create_graph=create_graph, allow_unused=True, materialize_grads=True
            )
            found = {id(output): product for output, product in zip(reached, products)}
        return tuple(
            found[id(output)] if id(output) in found else Tensor(np.zeros(output.shape, output.dtype))
            for output in outputs
        )

    return push
