"""``Parameter``: a tensor that a module registers as its own when it is assigned to an attribute."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.extend import Tensor


class Parameter(Tensor):
    """A leaf that is to be learned (``torch.nn.Parameter``). It shares memory with ``data``.

    Raises:
        AutogradError: it shall require grad but does not hold floating-point numbers.
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        super().__init__(np.empty(0, np.float32) if data is None else data)
        if isinstance(data, Tensor):
            # Graphs that saved `data` must notice a change through the parameter.
            self._counter = data._counter
        if requires_grad:
            self.requires_grad_()


def _as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A leaf's memory and version counter as a tensor of class ``cls``, without that class's own ``__init__``."""
    result = cls.__new__(cls)
    Tensor.__init__(result, self.numpy(force=True), self.requires_grad)
    result._counter = self._counter
    return result


if not hasattr(Tensor, "as_subclass"):
    Tensor.as_subclass = _as_subclass  # type: ignore[attr-defined]
