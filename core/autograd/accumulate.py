"""What happens to a leaf's gradient by default: it is added to ``.grad``.

The first gradient is kept as it came, as a ``Lent`` array that others may hold too (``a + b`` hands one array to both
its inputs). Whoever only reads, an optimizer for one, uses it so; the first look at ``.grad`` makes it the leaf's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AutogradError
from ..tensor import Lent, Tensor, grad_lock


def accumulate_grad(leaf: Tensor, grad: Any) -> None:
    """Add ``grad`` (an array, a sparse tensor, or a tensor of a recorded pass) to ``leaf.grad``.

    An array adds in place, as in PyTorch: whoever holds ``leaf.grad`` sees it change.

    Raises:
        AutogradError: its shape is not the leaf's; a rule of a custom node is wrong.
    """
    array = leaf._array
    if grad.shape != array.shape:
        raise AutogradError(f"a leaf of shape {array.shape} got a gradient of shape {tuple(grad.shape)}")
    with grad_lock:
        former = leaf._grad  # noqa: F841 - so that what is replaced dies, and its finalizer runs, outside the lock
        if isinstance(grad, Tensor):
            have = leaf._grad if leaf._grad is None else leaf.grad
            leaf._grad = grad if have is None else have + grad
            return
        if grad.dtype is not array.dtype:
            grad = grad.astype(array.dtype)
        _add(leaf, grad)


def _add(leaf: Tensor, grad: Any) -> None:
    have = leaf._grad
    if isinstance(have, Tensor) and not have.is_sparse:
        np.add(have._array, grad, out=have._array, casting="same_kind")
        have._counter[0] += 1
        return
    if have is None:
        new: Tensor | Lent = Lent(grad)
    else:
        new = Tensor(np.asarray((have._array if isinstance(have, Lent) else have) + grad))
    if leaf._grad is have:
        leaf._grad = new
    else:  # making an object ran a finalizer, and that a pass over this leaf
        _add(leaf, grad)
