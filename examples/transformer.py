"""Small transformer that learns to write like Python's language reference, character by character, in one process.

    python examples/transformer.py
    python examples/transformer.py --steps 100 --out somewhere

Causal self-attention in two layers. It writes a sample of what it learned to write, and a picture of what each character
of a line looks back at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import telegrad as tg
from numpy.typing import NDArray
from telegrad import nn
from telegrad.examples.figures import INK
from telegrad.examples.local_options import parse
from telegrad.examples.text import Text
from telegrad.examples.text_training import PROMPT, choose, learn, show

BATCH, LENGTH = 16, 64
WRITTEN = 500
LINE = 40  # characters of held-out text whose attention is drawn


class CharTransformer(nn.Module):
    """Transformer from characters (N, L), int64, L at most 64, to scores of the next ones (N, L, characters), float32."""

    def __init__(self, characters: int, width: int = 96, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.place = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, characters)

    def embedded(self, numbers: tg.Tensor) -> tg.Tensor:
        """Return the characters and their positions as vectors."""
        return self.embed(numbers) + self.place(tg.arange(numbers.shape[1]))

    def forward(self, numbers: tg.Tensor) -> tg.Tensor:
        """Return the scores of the next characters."""
        mask = nn.Transformer.generate_square_subsequent_mask(numbers.shape[1])
        hidden = self.layers(self.embedded(numbers), mask=mask, is_causal=True)
        return self.score(self.norm(hidden))

    def write(self, start: list[int], count: int) -> list[int]:
        """Return ``start`` followed by ``count`` characters that the model chooses, as numbers of characters."""
        written = list(start)
        with tg.no_grad():
            for _ in range(count):
                written.append(choose(self(tg.tensor([written[-LENGTH:]]))[0, -1]))
        return written

    def attention(self, numbers: tg.Tensor) -> NDArray[Any]:
        """Return the attention weights of one line in the first layer: (heads, L, L)."""
        first = self.layers.layers[0]
        mask = nn.Transformer.generate_square_subsequent_mask(numbers.shape[1])
        with tg.no_grad():
            hidden = first.norm1(self.embedded(numbers))
            _, weights = first.self_attn(hidden, hidden, hidden, attn_mask=mask, average_attn_weights=False)
        return weights[0].numpy()


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and show a sample and a picture."""
    about = "A small transformer learns to write like Python's language reference."
    options = parse("transformer", about, 1500, 0.003, arguments)
    tg.manual_seed(options.seed)
    text = Text(options.seed)
    model = CharTransformer(len(text.characters))
    history = learn(model, text, BATCH, LENGTH, options)
    sample = text.decode(model.write(text.encode(PROMPT), WRITTEN))
    line = densest(text)
    weights = model.attention(tg.from_numpy(line[None].copy()))

    def draw(part: Any) -> None:
        draw_attention(part, weights, text.decode(line.tolist()))

    bits = history.held_out[-1]
    title = f"A transformer on Python's language reference: {bits:.2f} bits per character of held-out text"
    show(sample, history, title, options, draw)


def densest(text: Text) -> NDArray[Any]:
    """Return the piece of held-out text with the most letters; attention on spaces shows little."""
    pieces = text.held_out[: len(text.held_out) // LINE * LINE].reshape(-1, LINE)
    return max(pieces, key=lambda piece: sum(character.isalpha() for character in text.decode(piece.tolist())))


def draw_attention(part: Any, weights: NDArray[Any], line: str) -> None:
    """Draw a square for each head, with a row for each character, dark where its attention is."""
    part.suptitle(
        "What each character (rows) looks back at (columns), by head, in the first layer", fontsize=11, color=INK
    )
    letters = [character if character.strip() else "\u00b7" for character in line]
    for head, axes in enumerate(part.subplots(2, len(weights) // 2).flat):
        axes.imshow(np.sqrt(weights[head]), cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(len(letters)), letters, fontsize=4, family="monospace")
        axes.set_yticks(range(len(letters)), letters, fontsize=4, family="monospace")
        axes.tick_params(length=0, pad=1)


if __name__ == "__main__":
    main()
