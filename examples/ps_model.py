"""Model of the digits, in two parts: the server owns ``Front``, every trainer a copy of ``Head``.

``Front`` divides the image into 36 overlapping windows of 3 x 3 pixels. Each grey level is a learned vector (an
embedding); one small linear layer is applied to every window, and a second one to all of them.
"""

from __future__ import annotations

import math

import numpy as np
import telegrad as tg
from telegrad.examples.digits import CLASSES, LEVELS, SIDE

WINDOW = 3
PLACES = (SIDE - WINDOW + 1) ** 2
SHADE = 4  # numbers for a grey level
FILTERS = 24
FEATURES = 128
HIDDEN = 64
SMOOTHING = 0.1  # of the labels: without it, the model overfits the few training digits


def window_pixels() -> tg.Tensor:
    """Return the pixels of each window: int64, shape (36, 9)."""
    corners = np.arange(SIDE - WINDOW + 1)
    offsets = np.arange(WINDOW)
    rows = corners[:, None, None, None] + offsets[None, None, :, None]
    columns = corners[None, :, None, None] + offsets[None, None, None, :]
    return tg.tensor((rows * SIDE + columns).reshape(PLACES, WINDOW * WINDOW))


class Front(tg.nn.Module):
    """First layers: grey levels (N, 64), int64, to features (N, 128)."""

    def __init__(self) -> None:
        super().__init__()
        self.windows = window_pixels()
        self.shade = tg.nn.Embedding(LEVELS, SHADE)
        self.filters = tg.nn.Linear(WINDOW * WINDOW * SHADE, FILTERS)
        self.gather = tg.nn.Linear(PLACES * FILTERS, FEATURES)
        with tg.no_grad():
            self.shade.weight.copy_(smooth_shades())

    def forward(self, levels: tg.Tensor) -> tg.Tensor:
        """Return the features of a batch."""
        shades = self.shade(levels[:, self.windows]).reshape(len(levels), PLACES, WINDOW * WINDOW * SHADE)
        seen = self.filters(shades).relu()
        features: tg.Tensor = self.gather(seen.reshape(len(levels), PLACES * FILTERS)).relu()
        return features


class Head(tg.nn.Module):
    """Last layers: features (N, 128) to a score for each digit (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = tg.nn.Sequential(tg.nn.Linear(FEATURES, HIDDEN), tg.nn.ReLU(), tg.nn.Linear(HIDDEN, CLASSES))

    def forward(self, features: tg.Tensor) -> tg.Tensor:
        """Return the scores of a batch."""
        scores: tg.Tensor = self.layers(features)
        return scores


class Model(tg.nn.Module):
    """Both parts in one process, for the checkpoint and for ``--check``."""

    def __init__(self, front: Front, head: Head) -> None:
        super().__init__()
        self.front = front
        self.head = head

    def forward(self, levels: tg.Tensor) -> tg.Tensor:
        """Return the scores of a batch of grey levels."""
        scores: tg.Tensor = self.head(self.front(levels))
        return scores


def smooth_shades() -> tg.Tensor:
    """Return first values of the embedding in which neighbouring levels are similar, so that this need not be learned."""
    level = np.linspace(0.0, 1.0, LEVELS)
    waves = [np.sin(np.pi * wave * level) for wave in range(1, SHADE)]
    return tg.tensor(np.stack([level, *waves], axis=1).astype(np.float32))


def loss_of(scores: tg.Tensor, labels: tg.Tensor) -> tg.Tensor:
    """Return the mean cross-entropy of a batch with smoothed labels, which training minimizes."""
    loss: tg.Tensor = tg.nn.functional.cross_entropy(scores, labels, label_smoothing=SMOOTHING)
    return loss


def least_loss() -> float:
    """Return the lower bound of ``loss_of``: the entropy of the smoothed labels."""
    wrong = SMOOTHING / CLASSES
    right = 1.0 - SMOOTHING + wrong
    return -right * math.log(right) - (CLASSES - 1) * wrong * math.log(wrong)


def count_right(scores: tg.Tensor, labels: tg.Tensor) -> int:
    """Return how many of a batch have their highest score for the right digit."""
    return int((scores.argmax(dim=1) == labels).sum())
