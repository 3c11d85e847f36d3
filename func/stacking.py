"""``stack_module_state``: the parameters of several modules of one form, stacked for ``vmap``."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import Tensor, stack
from ..nn import Module


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of modules by their paths, each stacked along a new first dimension.

    Args:
        models: at least one; all of one class and in one mode, training or not.

    Returns:
        Two dicts, of leaves that require gradients as the modules' do, and of buffers.

    Raises:
        RuntimeError: there is no module; or classes, modes or shapes differ.
    """
    if not models or len({(type(model), model.training) for model in models}) != 1:
        raise RuntimeError(
            "stack_module_state() needs modules of one class, all in training mode or all not; it got "
            f"{[(type(model).__name__, model.training) for model in models]}"
        )
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    stacked = {name: stack([each[name] for each in parameters]).detach() for name in parameters[0]}
    for name, tensor in stacked.items():
        tensor.requires_grad_(parameters[0][name].requires_grad)
    return stacked, {name: stack([each[name] for each in buffers]) for name in buffers[0]}
