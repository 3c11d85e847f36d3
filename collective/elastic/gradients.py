"""``GradientRows``: gradients and buffers of a module as rows, which are added up over workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.extend import Array
from ...nn import Module
from ..arrays import describe, fill, flat
from ..packing import by_dtype

LOSS = 0  # place of the loss among the facts


class GradientRows:
    """Gradients and buffers of a module as rows: one for each dtype of gradients, and one of *facts*, of float64.

    The facts are the loss, for each parameter whether it has a gradient, and the elements of all buffers. Everything is
    weighted by a worker's part of the batch, so the sum of all rows is the mean over the batch.

    Args:
        module: its parameters that require grad, and its buffers.

    Raises:
        ValueError: no parameter requires grad.
        TypeError: a buffer has complex numbers.
    """

    def __init__(self, module: Module) -> None:
        self._trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not self._trained:
            raise ValueError(f"no parameter of the {type(module).__name__} requires grad, so there is nothing to train")
        self._buffers = [*module.buffers()]
        for name, buffer in module.named_buffers():
            if buffer.numpy(force=True).dtype.kind == "c":
                raise TypeError(f"buffer {name!r} has complex numbers, of which ElasticTraining takes no mean")
        self._places = {id(parameter): place for place, parameter in enumerate(self._trained, 1)}
        self._kept: list[Array] = []
        self.keep_buffers()

    def like(self) -> list[str]:
        """Return dtypes and shapes, which must be equal on all workers."""
        return [describe(tensor) for tensor in [*self._trained, *self._buffers]]

    # -- buffers: a forward changes them, and counts only when its step does

    def keep_buffers(self) -> None:
        """Keep the buffers as they are, for ``restore_buffers``."""
        self._kept = [flat(buffer).copy() for buffer in self._buffers]

    def restore_buffers(self) -> None:
        """Give the buffers the values that were kept."""
        for buffer, row in zip(self._buffers, self._kept, strict=True):
            fill(buffer, row)

    # -- rows

    def collect(self, loss: float, weight: float) -> list[Array]:
        """Return the rows of one piece of the batch, from ``.grad`` and the buffers.

        Args:
            loss: of the piece.
            weight: its share of the batch.

        Raises:
            TypeError: a gradient is sparse.
        """
        rows = []
        for parameters in by_dtype(self._trained):
            row = np.concatenate([_gradient(parameter) for parameter in parameters])
            row *= row.dtype.type(weight)
            rows.append(row)
        used = [float(parameter.grad is not None) for parameter in self._trained]
        buffers = [flat(buffer).astype(np.float64) * weight for buffer in self._buffers]
        return [*rows, np.concatenate([[loss * weight], used, *buffers])]

    def zeros(self) -> list[Array]:
        """Return the rows of a worker without a piece."""
        return [np.zeros_like(row) for row in self.collect(0.0, 0.0)]

    def place(self, rows: Sequence[Array]) -> None:
        """Put sums of rows into ``.grad``."""
        *gradients, facts = rows
        for row, parameters in zip(gradients, by_dtype(self._trained), strict=True):
            start = 0
            for parameter in parameters:
                end = start + parameter.numel()
                part = row[start:end].reshape(parameter.shape)
                parameter.grad = Tensor(part) if facts[self._places[id(parameter)]] else None
                start = end

    def place_buffers(self, rows: Sequence[Array]) -> float:
        """Put sums of rows into the buffers, and keep them; return the loss."""
        facts, start = rows[-1], 1 + len(self._trained)
        for buffer in self._buffers:
            end = start + buffer.numel()
            fill(buffer, _as(flat(buffer).dtype, facts[start:end]))
            start = end
        self.keep_buffers()
        return float(facts[LOSS])


def _gradient(parameter: Any) -> Array:
    if parameter.grad is None:
        return np.zeros(parameter.numel(), flat(parameter).dtype)
    if parameter.grad.is_sparse:
        raise TypeError("ElasticTraining takes no sparse gradients; make the embedding with sparse=False")
    return flat(parameter.grad)


def _as(dtype: Any, means: Array) -> Array:
    if dtype.kind in "iub":
        means = np.rint(means)
    converted: Array = means.astype(dtype)
    return converted
