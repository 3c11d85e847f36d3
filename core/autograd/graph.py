"""Tools for graphs (``torch.autograd.graph``): hooks on saved tensors and on several tensors, and pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import AutogradError
from ..tensors import Tensor
from .drawing import draw as draw
from .edges import gradient_edge as gradient_edge
from .hooks import RemovableHandle
from .node import Edge
from .node import Node as Node
from .saved_hooks import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from .saved_hooks import saved_tensors_hooks as saved_tensors_hooks


def get_gradient_edge(tensor: Tensor) -> Edge:
    """Return the node, and the number of its output, that the gradient of ``tensor`` goes to.

    Raises:
        AutogradError: the tensor requires no grad.
    """
    edge = gradient_edge(tensor)
    if edge is None:
        raise AutogradError("this tensor does not require grad, so its gradient goes nowhere")
    return edge


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tell autograd that the memory of tensors was changed, so that backward passes refuse what was saved of it before."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        each._counter[0] += 1


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's name
    """Keeps saved tensors as they are: all tensors are on the CPU.

    Args:
        pin_memory, device_type: have no effect.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:
        super().__init__(lambda tensor: tensor, lambda tensor: tensor)


class MultiGradHandle:
    """Handle of ``register_multi_grad_hook``: removes the hook from all tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hook; calling it again does nothing."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> MultiGradHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiGradHandle:
    """Call ``fn`` with a list of the gradients of all ``tensors``, when all have arrived.

    Args:
        tensors: each requires grad.
        fn: the hook; its result is not used.
        mode: "all"; or "any", to call ``fn(grad)`` with the first gradient of each backward pass instead.

    Raises:
        ValueError: there is no such mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f'mode must be "all" or "any", and you gave {mode!r}')
    lock = threading.Lock()
    received: dict[int, Tensor] = {}

    def hook(number: int) -> Callable[[Tensor], None]:
        def arrived(grad: Tensor) -> None:
            with lock:
                first = not received
                received[number] = grad
                complete = len(received) == len(tensors)
                grads = [received[index] for index in sorted(received)]
                if complete:
                    received.clear()
            if mode == "any" and first:
                fn(grad)
            elif mode == "all" and complete:
                fn(grads)

        return arrived

    return MultiGradHandle([tensor.register_hook(hook(number)) for number, tensor in enumerate(tensors)])
