"""Random programs, as data: steps on values and on references to cells, each on some worker and asked for in some way.

A step has a number, and its result is known by it: a number, or a reference to a cell.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from .graph import Node, make_graph
from .meshes import MeshCall, make_mesh_call

MOST_STEPS = 24
LITERALS = 1000
CALL_WAYS = ("call", "async function", "promise", "passed on", "reference")
CELL_WAYS = ("proxy", "function", "elsewhere", "remote proxy")
STREAM_WAYS = ("generator", "async generator")
BLOCKING = "blocking "  # prefix of a way that blocks its thread; not in the simulator, whose single thread cannot


@dataclass(frozen=True)
class Step:
    """Step of a program.

    Attributes:
        action: what it does.
        values: numbers of earlier steps whose results are numbers.
        cells: numbers of earlier steps whose results are references.
        at: rank of the worker that it runs on, or that owns the cell that it makes.
        to: rank of another worker that takes part in some ways.
        way: how it is asked for.
        count: a small number: items of a stream, or a literal.
        taken: how many items of a stream are taken before it is closed.
        graph: calls that are sent together.
        mesh: a call on several workers.
    """

    action: str
    values: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()
    at: int = 0
    to: int = 0
    way: str = ""
    count: int = 0
    taken: int = 0
    graph: tuple[Node, ...] = ()
    mesh: MeshCall | None = None


@dataclass(frozen=True)
class Program:
    """Program: its steps, in order."""

    seed: int
    steps: tuple[Step, ...]


def make_program(seed: int, workers: int, blocking: bool) -> Program:
    """Return the program of a seed.

    Args:
        seed: decides everything but the other arguments.
        workers: number of workers.
        blocking: calls may block their thread.
    """
    maker = _Maker(random.Random(f"program {seed}"), workers, blocking)
    for _ in range(maker.rng.randint(3, MOST_STEPS)):
        maker.add()
    return Program(seed, tuple(maker.steps))


class _Maker:
    """Adds steps, and knows which results are numbers and which are references."""

    def __init__(self, rng: random.Random, workers: int, blocking: bool) -> None:
        self.rng = rng
        self.steps: list[Step] = []
        self._workers = workers
        self._blocking = blocking
        self._values: list[int] = []
        self._cells: list[int] = []
        # Cells that refer to one another in a circle are never freed. So a cell refers to older ones only.
        self._identities: dict[int, int] = {}  # by number of the step, the number of the step that made the cell
        self._inside: dict[int, int] = {}  # the cell that each refers to

    def add(self) -> None:
        number = len(self.steps)
        step = self._draw()
        self.steps.append(step)
        if step.action in ("make", "return", "take out"):
            self._cells.append(number)
            self._identities[number] = number
            if step.action == "take out":
                self._identities[number] = self._inside.get(self._identities[step.cells[0]], number)
        elif step.action == "drop":
            self._cells.remove(step.cells[0])
        else:
            self._values.append(number)

    def _draw(self) -> Step:
        rng = self.rng
        if not self._values:
            return Step("literal", count=rng.randrange(LITERALS))
        actions = [
            "literal",
            "combine",
            "combine",
            "make",
            "make",
            "return",
            "fail",
            "stream",
            "stream",
            "stream of cells",
            "graph",
            "graph",
            "mesh",
            "mesh",
        ]
        if self._cells:
            actions += [
                "add",
                "add",
                "add",
                "add together",
                "read",
                "read",
                "put in",
                "put in",
                "take out",
                "object",
                "graph of cell",
                "mesh with cell",
                "drop",
            ]
        action = rng.choice(actions)
        step: Step = getattr(self, "_" + action.replace(" ", "_"))(Step(action, at=self._worker(), to=self._worker()))
        return step

    def _worker(self) -> int:
        return self.rng.randrange(self._workers)

    def _filled(
        self, step: Step, values: int, cells: int, ways: tuple[str, ...], count: int = 0, taken: int = 0
    ) -> Step:
        rng = self.rng
        way = rng.choice(ways) if ways else ""
        if way and self._blocking and rng.random() < 0.5:
            way = BLOCKING + way
        chosen = tuple(rng.choice(self._values) for _ in range(values))
        held = tuple(rng.choice(self._cells) for _ in range(cells))
        return Step(step.action, chosen, held, step.at, step.to, way, count, taken)

    def _literal(self, step: Step) -> Step:
        return self._filled(step, 0, 0, (), self.rng.randrange(LITERALS))

    def _combine(self, step: Step) -> Step:
        return self._filled(step, 2, 0, CALL_WAYS)

    def _graph(self, step: Step, cells: int = 0) -> Step:
        step = self._filled(step, 1, cells, ("kept", "released"))
        return replace(step, action="graph", graph=make_graph(self.rng, self._workers, bool(cells)))

    def _graph_of_cell(self, step: Step) -> Step:
        return self._graph(step, 1)

    def _mesh(self, step: Step, cells: int = 0) -> Step:
        step = self._filled(step, 1, cells, ("awaited",))
        return replace(step, action="mesh", mesh=make_mesh_call(self.rng, self._workers, bool(cells)))

    def _mesh_with_cell(self, step: Step) -> Step:
        return self._mesh(step, 1)

    def _make(self, step: Step) -> Step:
        return self._filled(step, 1, 0, ("awaited", "at once"))

    def _return(self, step: Step) -> Step:
        return self._filled(step, 1, 0, ())

    def _fail(self, step: Step) -> Step:
        return self._filled(step, 1, 0, CALL_WAYS)

    def _stream(self, step: Step) -> Step:
        count = self.rng.randrange(12)
        return self._filled(step, 1, 0, STREAM_WAYS, count, self.rng.randint(0, 14))

    def _stream_of_cells(self, step: Step) -> Step:
        count = self.rng.randrange(5)
        return self._filled(step, 1, 0, STREAM_WAYS, count, self.rng.randint(0, 6))

    def _add(self, step: Step) -> Step:
        return self._filled(step, 1, 1, CELL_WAYS)

    def _add_together(self, step: Step) -> Step:
        return self._filled(step, 1, 1, (), self.rng.randint(2, 5))

    def _read(self, step: Step) -> Step:
        return self._filled(step, 0, 1, ("to_here", "proxy", "function"))

    def _put_in(self, step: Step) -> Step:
        step = self._filled(step, 0, 2, ("proxy", "elsewhere"))
        outer, inner = sorted(step.cells, key=self._identities.__getitem__, reverse=True)
        if self._identities[outer] == self._identities[inner]:
            return self._read(replace(step, action="read"))
        self._inside[self._identities[outer]] = self._identities[inner]
        return replace(step, cells=(outer, inner))

    def _take_out(self, step: Step) -> Step:
        return self._filled(step, 0, 1, ("proxy", "elsewhere"))

    def _object(self, step: Step) -> Step:
        return self._filled(step, 1, 2, ("function",))

    def _drop(self, step: Step) -> Step:
        return self._filled(step, 0, 1, ())
