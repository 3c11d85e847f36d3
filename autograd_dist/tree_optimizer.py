"""``TreeOptimizer``: a gradient transformation, as those of Optax, for trees of JAX's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .parameter_trees import Parameters


class TreeOptimizer:
    """Optimizer made of a gradient transformation. Each tree has a state of its own, and changes if it has a gradient.

    Args:
        make: function that returns a transformation, as ``optax.adam`` does: an object with ``init(tree)`` and
            ``update(gradients, state, tree)``, which returns the changes and the next state.
        parameters: the trees.
        args: positional arguments of ``make``.
        kwargs: keyword arguments of ``make``.

    Raises:
        TypeError: ``make`` returned something else.
    """

    def __init__(self, make: Callable[..., Any], parameters: Sequence[Parameters], *args: Any, **kwargs: Any) -> None:
        import jax

        transformation = make(*args, **kwargs)
        if not (hasattr(transformation, "init") and hasattr(transformation, "update")):
            raise TypeError(
                f"optimizer_class must make a gradient transformation, as optax.sgd does, because the parameters are of JAX; "
                f"{make!r} made a {type(transformation).__name__}"
            )

        def update(gradients: Any, state: Any, tree: Any) -> tuple[Any, Any]:
            changes, state = transformation.update(gradients, state, tree)
            return jax.tree.map(lambda array, change: (array + change).astype(array.dtype), tree, changes), state

        self._parameters = parameters
        self._update = jax.jit(update)
        self._states = [transformation.init(each.tree) for each in parameters]

    def step(self) -> None:
        """Replace each tree that has a gradient."""
        fresh = [
            None if each.grad is None else self._update(each.grad, state, each.tree)
            for each, state in zip(self._parameters, self._states)
        ]
        for place, (each, pair) in enumerate(zip(self._parameters, fresh)):
            if pair is not None:
                each.tree, self._states[place] = pair

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each tree, in their order."""
        return {"states": list(self._states)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of ``state_dict``.

        Args:
            state_dict: states of as many trees as this optimizer has, of the same forms.

        Raises:
            ValueError: it has others.
        """
        import jax

        states = list(state_dict["states"])
        if jax.tree.structure(states) != jax.tree.structure(self._states):
            raise ValueError("state_dict is of another optimizer, or of other trees of parameters")
        self._states = states
