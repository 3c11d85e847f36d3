"""Text to learn: Python's language reference, which ``help()`` shows, as characters; a tenth is held out."""

from __future__ import annotations

import importlib
import re

import numpy as np
import telegrad as tg
from numpy.typing import NDArray

HELD_OUT = 10  # a tenth


class Text:
    """Text as numbers of characters.

    Attributes:
        characters: all that occur, in the order of their numbers; one that is rare is replaced by a space.
        train, held_out: numbers, int64.
    """

    def __init__(self, seed: int) -> None:
        whole = re.sub(r"[^\x20-\x7e\n]", " ", "\n".join(importlib.import_module("pydoc_data.topics").topics.values()))
        whole = re.sub(r"\n{3,}", "\n\n", whole)
        self.characters = sorted(set(whole))
        numbers = {character: number for number, character in enumerate(self.characters)}
        encoded = np.array([numbers[character] for character in whole], np.int64)
        split = len(encoded) - len(encoded) // HELD_OUT
        self.train, self.held_out = encoded[:split], encoded[split:]
        self.random = np.random.default_rng(seed)

    def batch(self, count: int, length: int) -> tuple[tg.Tensor, tg.Tensor]:
        """Return random pieces of the training text and, for each character, the next one: both (count, length), int64."""
        return self._pieces(self.train, self.random.integers(0, len(self.train) - length - 1, count), length)

    def test(self, count: int, length: int) -> tuple[tg.Tensor, tg.Tensor]:
        """Return pieces of the held-out text, always the same ones."""
        return self._pieces(self.held_out, np.linspace(0, len(self.held_out) - length - 2, count).astype(int), length)

    def _pieces(self, text: NDArray[np.int64], starts: NDArray[np.int64], length: int) -> tuple[tg.Tensor, tg.Tensor]:
        places = starts[:, None] + np.arange(length + 1)
        pieces = text[places]
        return tg.from_numpy(pieces[:, :-1].copy()), tg.from_numpy(pieces[:, 1:].copy())

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the characters."""
        return [self.characters.index(character) for character in text]

    def decode(self, numbers: list[int]) -> str:
        """Return the characters of the numbers."""
        return "".join(self.characters[number] for number in numbers)
