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
    if not isinstance(grad, Tensor) and grad.dtype is not array.dtype:
        grad = grad.astype(array.dtype)
    added = False
    while not added:
        # The sum may run a user's code, so it is made without the lock, and again if another thread was faster. What is
        # replaced dies after the lock is released, for the same reason.
        have = leaf._grad
        if isinstance(grad, Tensor):
            have = leaf.grad if isinstance(have, Lent) else have
            added = _replace(leaf, have, grad if have is None else have + grad)
        elif have is None:
            added = _replace(leaf, None, Lent(grad))
        elif isinstance(have, Lent) or have.is_sparse:
            added = _replace(leaf, have, Tensor(np.asarray((have._array if isinstance(have, Lent) else have) + grad)))
        else:
            added = _add_in_place(leaf, have, grad)


def _replace(leaf: Tensor, have: Tensor | Lent | None, new: Tensor | Lent) -> bool:
    with grad_lock:
        if leaf._grad is not have:
            return False
        leaf._grad = new
    return True


def _add_in_place(leaf: Tensor, have: Tensor, grad: Any) -> bool:
    # Two threads must not add into the same memory: this is under the lock. It is NumPy on plain arrays, no tensor operation.
    with grad_lock:
        if leaf._grad is not have:
            return False
        np.add(have._array, grad, out=have._array, casting="same_kind")
        have._counter[0] += 1
    return True
