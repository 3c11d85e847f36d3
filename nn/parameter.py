"""``Parameter`` and ``Buffer``: tensors that a module registers as its own when they are assigned to an attribute."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Tensor, plain


class Parameter(Tensor):
    """Tensor that is learned: a leaf that a module registers (``torch.nn.Parameter``). It shares memory with ``data``.

    Args:
        data: a tensor or array; an empty one if ``None``.
        requires_grad: whether it gets gradients.

    Raises:
        AutogradError: it requires grad but does not hold floating-point numbers.
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        super().__init__(np.empty(0, np.float32) if data is None else data)
        if isinstance(data, Tensor):
            # Graphs that saved `data` must notice a change through the parameter.
            self._counter = data._counter
        if requires_grad:
            self.requires_grad_()


class Buffer(Tensor):
    """Tensor of a module's state that is not learned (``torch.nn.Buffer``). It shares memory with ``data``.

    Args:
        data: a tensor or array; an empty one if ``None``.
        persistent: whether ``state_dict`` contains it; an attribute too.
    """

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        super().__init__(np.empty(0, np.float32) if data is None else data)
        if isinstance(data, Tensor):
            self._counter = data._counter
        self.persistent = persistent


plain.update((Parameter, Buffer))
