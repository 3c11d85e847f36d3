"""Parameter server with a table of word vectors, whose gradients are sparse: trainers learn what paragraphs are about.

    telegrad run -n 3 examples/embedding_server.py      a server and two trainers
    python examples/embedding_server.py                 the same without the launcher
    telegrad run -n 3 --restart one examples/embedding_server.py --resume     goes on, whichever worker dies

The server owns an ``EmbeddingBag``: a vector for every word of Python's language reference. A trainer sends the words of some
paragraphs, gets the means of their vectors, and guesses which of the longest topics each paragraph belongs to. In the table,
only rows of words that occurred have gradients and are stepped. The server saves its table: if it dies, all go on from that. A
trainer that dies makes its steps again; what it has taught the table stays there.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import telegrad as tg
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.trainers import AGAIN, Owner, run_with_trainers, train_all

TOPICS, WORDS = 8, 24  # how many topics, and words of a paragraph
SIZE = 24
BATCH = 32
SAVE_EVERY = 50  # steps of the first trainer between two checkpoints of the table
HELD_OUT = 5  # every fifth paragraph


class Paragraphs:
    """Pieces of the longest topics, as numbers of words.

    Attributes:
        vocabulary: number of different words.
        words: int64, (N, 24).
        topics: int64, (N,).
        held_out: which of them are held out.
    """

    def __init__(self) -> None:
        texts = importlib.import_module("pydoc_data.topics").topics.values()
        longest = [re.findall(r"[a-z]+", text.lower()) for text in sorted(texts, key=len)[-TOPICS:]]
        numbers = {
            word: number for number, word in enumerate(sorted(Counter(word for text in longest for word in text)))
        }
        pieces = [
            (topic, [numbers[word] for word in text[at : at + WORDS]])
            for topic, text in enumerate(longest)
            for at in range(0, len(text) - WORDS, WORDS)
        ]
        self.vocabulary = len(numbers)
        self.topics, self.words = (np.array(each, np.int64) for each in zip(*pieces))
        self.held_out = np.arange(len(self.topics)) % HELD_OUT == 0


class Table(Owner):
    """Table of word vectors on the server."""

    def __init__(self, vocabulary: int, seed: int) -> None:
        tg.manual_seed(seed)
        self.module = tg.nn.EmbeddingBag(vocabulary, SIZE, sparse=True)

    def means(self, words: tg.Tensor) -> tg.Tensor:
        """Return the mean vectors (N, 24) of the words (N, 24) of paragraphs."""
        result: tg.Tensor = self.module(words)
        return result


@tg.rpc.idempotent
def train(index: int, trainers: int, table: tg.RRef, options: Options) -> tuple[list[float], float, float]:
    """Train on one shard of the paragraphs.

    Args:
        index: number of this trainer.
        trainers: number of all trainers.
        table: reference to the ``Table``.
        options: the options on the command line.

    Returns:
        The loss of each step; the share of the table's rows that had a gradient in a step, in the mean; and the accuracy on the
        paragraphs that are held out.
    """
    tg.manual_seed(options.seed + 1 + index)
    data, random, head = Paragraphs(), np.random.default_rng([options.seed, index]), tg.nn.Linear(SIZE, TOPICS)
    mine = np.flatnonzero(~data.held_out)[index::trainers]
    vectors = tg.DistributedOptimizer(tg.optim.Adagrad, table.rpc_sync().parameter_rrefs(), lr=options.lr)
    own = tg.DistributedOptimizer(tg.optim.Adam, [tg.RRef(each) for each in head.parameters()], lr=options.lr / 10)
    losses, touched = [], []
    for step in range(1, options.steps + 1):
        rows = random.choice(mine, BATCH)
        with tg.autograd_dist.context() as context_id:
            scores = head(table.rpc_sync().means(tg.tensor(data.words[rows])))
            loss = tg.nn.functional.cross_entropy(scores, tg.tensor(data.topics[rows]))
            tg.autograd_dist.backward(context_id, [loss])
            vectors.step(context_id)
            own.step(context_id)
        losses.append(loss.item())
        touched.append(len(np.unique(data.words[rows])) / data.vocabulary)
        if index == 0 and step % SAVE_EVERY == 0:
            table.rpc_sync().save()
    with tg.no_grad():
        found = head(table.rpc_sync().means(tg.tensor(data.words[data.held_out]))).argmax(1)
    return losses, float(np.mean(touched)), float(np.mean(found.numpy() == data.topics[data.held_out]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    about = "Learn word vectors on a server, with sparse gradients."
    start(work, 3, (parse("embedding_server", about, 250, 0.3, arguments, resumes=True),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the trainers only serve: the server calls them."""
    run_with_trainers(rank, world_size, learn, options, 3)


def learn(names: Sequence[str], options: Options) -> None:
    """Let all trainers train, and print and draw how well."""
    data = Paragraphs()
    table = Table(data.vocabulary, options.seed)
    table.save_in(options.out / "checkpoints", options.resume)
    results = train_all(names, train, tg.RRef(table), options, retry=AGAIN)
    most = np.bincount(data.topics[data.held_out]).max() / data.held_out.sum()
    accuracy = float(np.mean([accuracy for *_, accuracy in results]))
    share = float(np.mean([touched for _, touched, _ in results]))
    print(f"{data.vocabulary} words; {share:.1%} of their vectors had a gradient in a step")
    print(f"accuracy on held-out paragraphs: {accuracy:.1%} (always the most frequent topic: {most:.1%})")
    lines = {name: losses for name, (losses, *_) in zip(names, results)}
    title = f"Word vectors on a server: {accuracy:.0%} of the held-out paragraphs right"
    curves(options.out / "training.png", title, lines, "step of a trainer", "cross-entropy")


if __name__ == "__main__":
    main(sys.argv[1:])
