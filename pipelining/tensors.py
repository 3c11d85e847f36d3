"""Operations of stages on tensors of ours and of PyTorch: the module of a stage decides which it has."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ..core import Tensor, autograd, cat, enable_grad, no_grad
from ..nn import utils


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor of ours or of PyTorch."""
    return isinstance(value, Tensor) or _is_torchs(value)


def as_leaf(value: Any, requires_grad: bool) -> Any:
    """Return a tensor without history; other values as they are."""
    if not is_tensor(value):
        return value
    leaf = value.detach()
    differentiable = (
        leaf.dtype.kind in "fc" if isinstance(leaf, Tensor) else leaf.is_floating_point() or leaf.is_complex()
    )
    return leaf.requires_grad_() if requires_grad and differentiable else leaf


def needs_grad(value: Any) -> bool:
    """Return whether a value is a tensor that requires grad."""
    return is_tensor(value) and value.requires_grad


@contextmanager
def recording(records: bool) -> Iterator[None]:
    """Record what is computed in this block, or record nothing."""
    torch = sys.modules.get("torch")
    with ExitStack() as stack:
        stack.enter_context(enable_grad() if records else no_grad())
        if torch is not None and hasattr(torch, "set_grad_enabled"):
            stack.enter_context(torch.set_grad_enabled(records))
        yield


def run_again_later(module: Any, inputs: Sequence[Any]) -> Any:
    """Call a module, and let the backward compute again what the module would keep for it."""
    if not any(map(_is_torchs, inputs)):
        return autograd.checkpoint(module, *inputs)
    from torch.utils.checkpoint import checkpoint

    return checkpoint(module, *inputs, use_reentrant=False)


def run_backward(results: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Add gradients of the leaves to their ``.grad``.

    Args:
        results: tensors that require grad, of one library.
        gradients: one for each; ``None`` for a scalar.
    """
    backward = sys.modules["torch"].autograd.backward if any(map(_is_torchs, results)) else autograd.backward
    backward(list(results), list(gradients))


def joined(parts: Sequence[Any]) -> Any:
    """Return the rows of all parts as one tensor."""
    return sys.modules["torch"].cat(parts) if any(map(_is_torchs, parts)) else cat(parts)


def total_norm(gradients: Sequence[Any], order: float) -> float:
    """Return the norm of all elements of some gradients."""
    of_library = sys.modules["torch"].nn.utils if any(map(_is_torchs, gradients)) else utils
    return float(of_library.get_total_norm(gradients, order))


def clip(parameters: Sequence[Any], max_norm: float, total: Tensor) -> None:
    """Scale the gradients of parameters by ``max_norm / total`` if that is below 1."""
    if not any(map(_is_torchs, parameters)):
        utils.clip_grads_with_norm_(parameters, max_norm, total)
        return
    torch = sys.modules["torch"]
    torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, torch.tensor(total.item()))


def _is_torchs(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))
