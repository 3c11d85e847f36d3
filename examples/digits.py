"""Handwritten digits: 1,797 real images of 8 x 8 pixels (source: ``data/DIGITS.md``), a fifth of them held out.

Every fifth image is held out, always the same ones, so that accuracies of different runs can be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ARCHIVE = Path(__file__).parent / "data" / "digits.npz"
SIDE = 8
PIXELS = SIDE * SIDE
LEVELS = 17  # grey levels 0 to 16
CLASSES = 10
HELD_OUT = 5  # every fifth image

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


class Digits(NamedTuple):
    """Images, float32 from 0 (paper) to 1 (ink), shape (N, 8, 8); labels, int64, shape (N,)."""

    train_x: Images
    train_y: Labels
    test_x: Images
    test_y: Labels


def load() -> Digits:
    """Read the archive and split it into 1,437 images to learn from and 360 held out."""
    with np.load(ARCHIVE) as archive:
        images = archive["images"].astype(np.float32) / (LEVELS - 1)
        labels = archive["labels"].astype(np.int64)
    held_out = np.arange(len(labels)) % HELD_OUT == 0
    return Digits(images[~held_out], labels[~held_out], images[held_out], labels[held_out])


def to_levels(images: Images) -> NDArray[np.int64]:
    """Return the grey level, 0 to 16, of every pixel: int64, shape (N, 64)."""
    levels = np.rint(images * (LEVELS - 1)).astype(np.int64)
    return levels.reshape(len(images), PIXELS)


def jitter(images: Images, generator: np.random.Generator, reach: float = 0.5) -> Images:
    """Return the images, each shifted by up to ``reach`` pixels in both directions, so that epochs differ.

    Whole pixels would be too much: these digits fill their images.
    """
    down, right = generator.uniform(-reach, reach, (2, len(images))).astype(np.float32)
    return _move(_move(images, down, 1), right, 2)


def _move(images: Images, shift: Images, axis: int) -> Images:
    """Interpolate between each pixel and its neighbour; pixels outside of the image are 0."""
    padding = [(0, 0), (0, 0), (0, 0)]
    padding[axis] = (1, 1)
    padded = np.pad(images, padding)
    before, after = padded.take(range(SIDE), axis), padded.take(range(2, SIDE + 2), axis)
    shift = shift[:, None, None]
    moved = images + shift.clip(min=0) * (before - images) + (-shift).clip(min=0) * (after - images)
    return moved.astype(np.float32, copy=False)  # it has this type; some type checkers do not see it
