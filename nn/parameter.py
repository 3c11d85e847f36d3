"""``Parameter`` and ``Buffer``: tensors that a module registers as its own when they are assigned to an attribute.

Uninitialized ones get their shape later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import empty
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


class Materialized:
    """Base of uninitialized parameters and buffers, which are empty until their shape is known."""

    __class__: type
    data: Any

    def materialize(self, shape: Sequence[int], device: str | None = None, dtype: npt.DTypeLike | None = None) -> None:
        """Allocate memory for a shape; its elements are not set.

        Args:
            shape: the shape.
            device: "cpu" or ``None``.
            dtype: another dtype than the present one.
        """
        self._become(empty(tuple(shape), dtype=dtype or self.data.dtype, device=device))

    def _become(self, value: Tensor) -> None:
        self.data = value
        self.__class__ = Parameter if isinstance(self, Parameter) else Tensor


class UninitializedParameter(Materialized, Parameter):
    """Parameter whose shape is not known yet.

    It stays the same object when it gets a shape, so that an optimizer may hold it before.

    Args:
        requires_grad, device, dtype: of the parameter.
    """

    def __init__(
        self, requires_grad: bool = True, device: str | None = None, dtype: npt.DTypeLike | None = None
    ) -> None:
        super().__init__(empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(Materialized, Tensor):
    """Buffer whose shape is not known yet.

    Args:
        requires_grad, device, dtype: of the buffer.
    """

    def __init__(
        self, requires_grad: bool = False, device: str | None = None, dtype: npt.DTypeLike | None = None
    ) -> None:
        super().__init__(empty(0, device=device, dtype=dtype)._array, requires_grad)


plain.update((Parameter, Buffer))
