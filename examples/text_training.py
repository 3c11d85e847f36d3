"""Parts that the examples on text share: the loss, bits per character, sampling, and the picture."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Callable
from typing import Any

import telegrad as tg
from telegrad import nn
from telegrad.examples.figures import INK
from telegrad.examples.local_options import Options
from telegrad.examples.local_picture import picture
from telegrad.examples.local_training import History, train
from telegrad.examples.text import Text

PROMPT = "The "
TEST_PIECES = 64


def bits(scores: tg.Tensor, targets: tg.Tensor) -> tg.Tensor:
    """Return the mean cross-entropy of scores (..., characters) in bits per character."""
    flat = scores.reshape(-1, scores.shape[-1])
    return nn.functional.cross_entropy(flat, targets.reshape(-1)) / math.log(2)


def learn(model: nn.Module, text: Text, batch: int, length: int, options: Options) -> History:
    """Train ``model``, which gives scores of the next characters, and print its result on held-out text."""
    inputs, targets = text.test(TEST_PIECES, length)

    def loss_of_a_batch() -> tg.Tensor:
        pieces, following = text.batch(batch, length)
        return bits(model(pieces), following)

    began = time.perf_counter()
    history = train(model, loss_of_a_batch, lambda: float(bits(model(inputs), targets)), options)
    print(f"{options.steps} steps took {time.perf_counter() - began:.1f} s")
    print(f"bits per character on held-out text: {history.held_out[-1]:.3f} (knowing nothing: {nothing(text):.3f})")
    return history


def nothing(text: Text) -> float:
    """Return the bits per character of a model for which all characters are equally likely."""
    return math.log2(len(text.characters))


def choose(scores: tg.Tensor, temperature: float = 0.7) -> int:
    """Return the number of a random character by its score; a low temperature prefers likely ones."""
    return int(tg.distributions.Categorical(logits=scores / temperature).sample())


def show(
    sample: str, history: History, title: str, options: Options, right: Callable[[Any], None] | None = None
) -> None:
    """Print the sample, save it, and draw the picture; ``right`` draws in its right half instead of the sample."""
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "sample.txt").write_text(sample)
    print(f"what it writes after {PROMPT!r}:\n{textwrap.indent(sample, '    ')}")

    def draw(figure: Any, part: Any) -> None:
        if right is None:
            write(part, sample)
        else:
            right(part)

    picture(options.out / "training.png", title, history, "bits per character", draw)


def write(part: Any, sample: str, width: int = 64, lines: int = 22) -> None:
    """Draw the sample as text."""
    part.suptitle(f"What it writes after {PROMPT!r}", fontsize=11, color=INK)
    wrapped = [short for line in sample.splitlines() for short in (textwrap.wrap(line, width) or [""])]
    part.text(0.02, 0.9, "\n".join(wrapped[:lines]), family="monospace", fontsize=8, va="top", color=INK)
