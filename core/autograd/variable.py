"""``Variable``: the former name of tensors that take part in autograd."""

from __future__ import annotations

from ..tensors import Tensor


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:  # noqa: N802 - PyTorch's name
    """Return ``data.detach().requires_grad_(requires_grad)``, for older programs."""
    return data.detach().requires_grad_(requires_grad)
