"""Averages of a model's parameters over training, as in ``torch.optim.swa_utils``: ``AveragedModel``, ``update_bn``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core import no_grad, tensor
from ...core.extend import Tensor
from ..batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..module import Module

Average = Callable[[Tensor, Tensor, Any], Tensor]
AverageAll = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the exponential moving average for ``AveragedModel``: ``decay * average + (1 - decay) * value``.

    Args:
        decay: share of the former average that stays, 0 to 1.

    Raises:
        ValueError: ``decay`` is not from 0 to 1.
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"decay must be from 0 to 1, and you gave {decay}")
    return lambda average, value, count: average * decay + value * (1 - decay)


def get_swa_avg_fn() -> Average:
    """Return the mean of all values so far for ``AveragedModel``: ``average + (value - average) / (count + 1)``."""
    return lambda average, value, count: average + (value - average) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageAll:
    """Return ``get_ema_avg_fn`` for lists of parameters, which are changed in place.

    Args:
        decay: share of the former average that stays, 0 to 1.

    Raises:
        ValueError: ``decay`` is not from 0 to 1.
    """
    return _for_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> AverageAll:
    """Return ``get_swa_avg_fn`` for lists of parameters, which are changed in place."""
    return _for_all(get_swa_avg_fn())


def _for_all(average: Average) -> AverageAll:
    def update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        with no_grad():
            for former, value in zip(averages, values):
                former.copy_(average(former, value, count))

    return update


class AveragedModel(Module):
    """Copy of a model whose parameters are averages of the model's, over all calls of ``update_parameters``.

    Args:
        model: the model to copy.
        device: "cpu" or ``None``.
        avg_fn: returns the new average from an average, a new value and the number of values before; by default the
            mean.
        multi_avg_fn: the same for lists of them, in place.
        use_buffers: whether buffers are averaged too; otherwise they are copied.

    Attributes:
        module: the copy.
        n_averaged: number of calls of ``update_parameters``, a tensor.

    Raises:
        ValueError: both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: str | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("give avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the present parameters of ``model`` to the averages."""
        averages: list[Tensor] = [*self.module.parameters()]
        values: list[Tensor] = [*model.parameters()]
        own, others = ([*each.buffers()] for each in (self.module, model))
        copied = list(zip(own, others))
        if self.use_buffers:
            averages, values, copied = averages + own, values + others, []
        with no_grad():
            count = int(self.n_averaged.item())
            if count:
                update = self.multi_avg_fn or _for_all(self.avg_fn or get_swa_avg_fn())
                update([each.detach() for each in averages], [each.detach() for each in values], count)
            else:
                copied += zip(averages, values)
            for average, value in copied:
                average.copy_(value)
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: str | None = None) -> None:
    """Compute the running statistics of the model's batch normalization layers again, over one pass of ``loader``.

    Args:
        loader: yields inputs, or lists and tuples whose first item is the input.
        model: called with each input, in training mode.
        device: "cpu" or ``None``.
    """
    layers = [each for each in model.modules() if isinstance(each, (BatchNorm1d, BatchNorm2d, BatchNorm3d))]
    if not layers:
        return
    former, momenta = model.training, [layer.momentum for layer in layers]
    try:
        model.train()
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the mean over all batches
        with no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    finally:
        for layer, momentum in zip(layers, momenta):
            layer.momentum = momentum
        model.train(former)
