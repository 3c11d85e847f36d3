"""LSTM that learns to write like Python's language reference, character by character, in one process.

    python examples/char_rnn.py
    python examples/char_rnn.py --steps 100 --out somewhere

It writes a sample of what it learned to write, and a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import telegrad as tg
from telegrad import nn
from telegrad.examples.local_options import parse
from telegrad.examples.text import Text
from telegrad.examples.text_training import PROMPT, choose, learn, show

BATCH, LENGTH = 32, 64
WRITTEN = 600


class CharRNN(nn.Module):
    """LSTM from characters (N, L), int64, to scores of the next ones (N, L, characters), float32."""

    def __init__(self, characters: int, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.score = nn.Linear(width, characters)

    def forward(self, numbers: tg.Tensor) -> tg.Tensor:
        """Return the scores of the next characters."""
        hidden, _ = self.lstm(self.embed(numbers))
        return self.score(hidden)

    def write(self, start: list[int], count: int) -> list[int]:
        """Return ``start`` followed by ``count`` characters that the model chooses, as numbers of characters."""
        written = list(start)
        state: Any = None
        new = written
        with tg.no_grad():
            for _ in range(count):
                hidden, state = self.lstm(self.embed(tg.tensor([new])), state)
                new = [choose(self.score(hidden)[0, -1])]
                written += new
        return written


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and show a sample and a picture."""
    options = parse("char_rnn", "An LSTM learns to write like Python's language reference.", 2000, 0.01, arguments)
    tg.manual_seed(options.seed)
    text = Text(options.seed)
    model = CharRNN(len(text.characters))
    history = learn(model, text, BATCH, LENGTH, options)
    sample = text.decode(model.write(text.encode(PROMPT), WRITTEN))
    title = f"An LSTM on Python's language reference: {history.held_out[-1]:.2f} bits per character of held-out text"
    show(sample, history, title, options)


if __name__ == "__main__":
    main()
