"""MapReduce (Dean and Ghemawat 2004) over text: workers count words, exchange the counts, and each adds up its own words.

    telegrad run -n 4 examples/word_count.py        a caller and three workers
    python examples/word_count.py                   the same without the launcher

The text is Python's language reference. ``map``: one call gives each worker its part of the pages, which it counts and keeps, a
table for each worker of the next step. ``reduce``: one call gives all workers references to all counters, and each fetches its
tables from the others; nothing of them passes through the caller. The most frequent words come back over the tree of the mesh.
"""

from __future__ import annotations

import heapq
import importlib
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence

import telegrad as tg
from telegrad import rpc
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.trainers import run_with_trainers

WORD = re.compile(r"[a-z]{3,}")
Row = tuple[int, str]  # how often a word occurs, and the word


class Counts:
    """Counts of the words on some pages: the ``map`` of one worker.

    Args:
        pages: the text.
        parts: number of tables; a word is in the table that its checksum says, on every worker the same.
    """

    def __init__(self, pages: Sequence[str], parts: int) -> None:
        self._tables = [Counter[str]() for _ in range(parts)]
        for page in pages:
            for word in WORD.findall(page.lower()):
                self._tables[zlib.crc32(word.encode()) % parts][word] += 1

    def table(self, part: int) -> Counter[str]:
        """Return one of the tables."""
        return self._tables[part]


def add_up(counters: Sequence[tg.RRef], part: int, most: int) -> list[Row]:
    """Return the most frequent words of one part: the ``reduce`` of one worker.

    Args:
        counters: references to the ``Counts`` of all workers.
        part: number of the table.
        most: how many words.
    """
    total = Counter[str]()
    for future in [counter.rpc_async().table(part) for counter in counters]:
        total.update(future.wait())
    return heapq.nlargest(most, ((count, word) for word, count in total.items()))


def load_pages() -> list[str]:
    """Return the pages of Python's language reference."""
    pages: list[str] = list(importlib.import_module("pydoc_data.topics").topics.values())
    return pages


def count_words(names: Sequence[str], pages: Sequence[str], most: int) -> list[Row]:
    """Return the most frequent words of some pages, counted by workers.

    Args:
        names: of the workers.
        pages: the text.
        most: how many words.
    """
    mesh, size = rpc.mesh(names), len(names)
    counters = mesh.remote(Counts, (rpc.scattered([pages[place::size] for place in range(size)]), size))
    rows = mesh.call(add_up, (list(counters), rpc.scattered(list(range(size))), most), reduce="cat")
    return heapq.nlargest(most, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options = parse(
        "word_count", "Count words on several workers; steps: how many words are shown.", 10, 0.0, arguments
    )
    start(work, 4, (options,))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; all but the caller only serve."""
    run_with_trainers(rank, world_size, show, options, 4)


def show(names: Sequence[str], options: Options) -> None:
    """Count, and print the most frequent words."""
    pages, began = load_pages(), time.perf_counter()
    rows = count_words(names, pages, options.steps)
    print(f"{len(pages)} pages, counted by {len(names)} workers in {time.perf_counter() - began:.2f} s")
    print(*(f"{word} {count}" for count, word in rows), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
