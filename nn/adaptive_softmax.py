"""``AdaptiveLogSoftmaxWithLoss``: a softmax over very many classes, most of which are rare."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..core import argmax, cat, gather, log_softmax
from ..core.extend import Tensor
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class ASMoutput(NamedTuple):
    """Result of ``AdaptiveLogSoftmaxWithLoss``: the log-probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of target classes, which are numbered from the most frequent one on (Grave et al. 2017).

    The head chooses between the first classes, one by one, and clusters of the others. A cluster's tail chooses within
    it, and has fewer features the rarer its classes are. Only the tails that targets need are computed.

    Args:
        in_features: number of features of the inputs.
        n_classes: number of classes.
        cutoffs: first class of each cluster, rising, from 1 to ``n_classes - 1``.
        div_value: factor by which each tail has fewer features than the one before.
        head_bias: whether the head has a bias.
        device, dtype: of the parameters.

    Raises:
        ValueError: the cutoffs do not rise, or are out of range.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        starts = list(cutoffs)
        if not starts or starts != sorted(set(starts)) or starts[0] < 1 or starts[-1] > n_classes - 1:
            raise ValueError(f"cutoffs must rise from 1 to at most {n_classes - 1}, and you gave {starts}")
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*starts, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = starts[0], len(starts)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList(
            Sequential(
                Linear(in_features, int(in_features // div_value ** (number + 1)), False, device, dtype),
                Linear(
                    int(in_features // div_value ** (number + 1)),
                    self.cutoffs[number + 1] - self.cutoffs[number],
                    False,
                    device,
                    dtype,
                ),
            )
            for number in range(self.n_clusters)
        )

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for layer in (self.head, *(layer for each in self.tail for layer in each.children())):
            layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> ASMoutput:
        """Return the log-probability of each target, shape (N,), and the mean of the losses.

        Args:
            input: shape (N, in_features), or (in_features,).
            target: classes, integers of shape (N,), or ().

        Raises:
            IndexError: a target is not a class.
            ValueError: the shapes do not fit.
        """
        if input.ndim - target.ndim != 1 or target.ndim > 1 or input.shape[:-1] != target.shape:
            raise ValueError(
                f"an input of shape {input.shape} (N, in_features) does not fit targets of shape {target.shape} (N,)"
            )
        rows, classes = input.reshape(-1, input.shape[-1]), target.numpy().reshape(-1)
        wrong = classes[(classes < 0) | (classes >= self.n_classes)]
        if wrong.size:
            raise IndexError(f"target {wrong[0]} is not a class: there are {self.n_classes}, counted from 0")
        cluster = np.searchsorted(self.cutoffs, classes, "right")  # 0 for the head's own classes
        chosen = np.where(cluster == 0, classes, self.shortlist_size + cluster - 1)
        output = gather(log_softmax(self.head(rows), 1), 1, Tensor(chosen[:, None])).squeeze(1)
        for number in np.unique(cluster[cluster > 0]).tolist():
            members = np.flatnonzero(cluster == number)
            within = Tensor(classes[members, None] - self.cutoffs[number - 1])
            inside = gather(log_softmax(self.tail[number - 1](rows[members]), 1), 1, within)
            output = output.index_add(0, Tensor(members), inside.squeeze(1))
        return ASMoutput(output.reshape(target.shape), -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, shape (N, n_classes), for inputs of shape (N, in_features)."""
        head = log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for number, tail in enumerate(self.tail):
            parts.append(log_softmax(tail(input), 1) + head[:, self.shortlist_size + number].unsqueeze(1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each input, shape (N,)."""
        return argmax(self.log_prob(input), 1)
