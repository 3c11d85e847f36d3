"""Graphs of calls that are sent together, as data: results that are not there yet are arguments and receivers of others."""

from __future__ import annotations

import random
from dataclasses import dataclass

MOST_NODES = 8
START = -1  # place of the number that a graph begins with
GIVEN = -2  # place of the cell that it may use
TAKE_CELLS = ("plus", "with_number")  # functions whose left argument is a cell; they are methods of cells, too
MAKE_CELLS = ("new_cell", "plus")
FUNCTIONS = ("combine", "combine", "combine", "new_cell", "fail")
FORMS = ("future", "reference", "receiver")


@dataclass(frozen=True)
class Node:
    """Call of a graph.

    Attributes:
        function: its name; that of a method of the left argument if the form is "receiver".
        left: place of the left argument: number of an earlier node, ``START`` or ``GIVEN``.
        right: place of the right one.
        at: rank of the worker that it runs on; a method runs where its object is.
        form: its result is a "future" or a "reference"; "receiver": a reference, made by a method of the left argument.
    """

    function: str
    left: int
    right: int
    at: int
    form: str


def make_graph(rng: random.Random, workers: int, given: bool) -> tuple[Node, ...]:
    """Return a random graph.

    Args:
        rng: decides.
        workers: number of workers.
        given: whether it uses a cell that is there before.
    """
    numbers, cells = [START], [GIVEN] if given else []
    nodes: list[Node] = []
    for number in range(rng.randint(2, MOST_NODES)):
        function = rng.choice(FUNCTIONS + TAKE_CELLS * 2 if cells else FUNCTIONS)
        takes_cell = function in TAKE_CELLS
        # All failures of a graph are equal: which of two failed arguments is told first is not known.
        left = START if function == "fail" else rng.choice(cells if takes_cell else numbers)
        form = rng.choice(FORMS if takes_cell else FORMS[:2])
        nodes.append(Node(function, left, rng.choice(numbers), rng.randrange(workers), form))
        (cells if function in MAKE_CELLS else numbers).append(number)
    return tuple(nodes)


def sinks(graph: tuple[Node, ...]) -> list[int]:
    """Return the numbers of the nodes whose results no other node uses."""
    used = {place for node in graph for place in (node.left, node.right)}
    return [number for number in range(len(graph)) if number not in used]
