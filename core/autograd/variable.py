"""``Variable``: what tensors that take part in autograd were called before all of them could."""

from __future__ import annotations

from ..tensors import Tensor


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:  # noqa: N802 - PyTorch's name
    """``data.detach().requires_grad_(requires_grad)``, for programs of that time."""
    return data.detach().requires_grad_(requires_grad)
