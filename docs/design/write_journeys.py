"""Write ``journeys.md``: the functions that five usual calls pass through, recorded while they run.

``python docs/design/write_journeys.py`` writes the page; ``--print`` shows it instead. Each journey runs once before it is
recorded, so that connections and caches are warm, and then many times: the page shows the shortest run. The longer ones
pass through what happens now and then, such as a second reader, a wait that sleeps, or a timer that fell due.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import itertools
import runpy
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import telegrad as tg
from telegrad.launcher.cli import main as command_line
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.rpc.lanes.sockets import KINDS
from telegrad.testing.cluster import in_process_cluster

ROOT = Path(tg.__file__).parent
PAGE = Path(__file__).with_name("journeys.md")
LAYERS: dict[str, int] = runpy.run_path(str(ROOT / "tests" / "package" / "test_layers.py"))["LAYERS"]
HIDDEN = ("testing", "tests", "examples", "benchmarks")  # the cluster that the journeys run in is no part of them

Step = tuple[str, str]  # (file below the root, function)


class Recorder:
    """Records the functions of the package that run in each thread, in order, each once.

    Attributes:
        paths: for each thread, its steps.
        upward: calls from a lower layer into a higher one, as (caller, callee).
    """

    def __init__(self) -> None:
        self.paths: dict[str, dict[Step, None]] = {}
        self.upward: dict[tuple[Step, Step], None] = {}
        self.recording = False

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Note one call; a function for ``sys.setprofile``."""
        if self.recording and event == "call" and (step := _step(frame.f_code)):
            self.paths.setdefault(threading.current_thread().name, {})[step] = None
            caller = frame.f_back
            before = caller and _step(caller.f_code)
            if before and _layer(before) < _layer(step):
                self.upward[before, step] = None

    @property
    def files(self) -> int:
        """Number of files that the journey passes through."""
        return len({file for path in self.paths.values() for file, _ in path})

    @property
    def functions(self) -> int:
        """Number of functions that the journey calls."""
        return len({step for path in self.paths.values() for step in path})

    @property
    def hops(self) -> int:
        """Number of steps from one file to another."""
        paths = map(list, self.paths.values())
        return sum(one[0] != other[0] for path in paths for one, other in itertools.pairwise(path))

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Record what runs inside the block."""
        self.paths, self.upward, self.recording = {}, {}, True
        try:
            yield
        finally:
            self.recording = False


def _step(code: CodeType) -> Step | None:
    path = Path(code.co_filename)
    if code.co_name.startswith("<") or not path.is_relative_to(ROOT):
        return None
    place = path.relative_to(ROOT)
    if place.parts[0] in HIDDEN or place.parts[0].startswith((".", "docs")):
        return None
    return str(place), getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")


def _layer(step: Step) -> int:
    return LAYERS.get(step[0].partition("/")[0], 0)


# -- the journeys


def calls(record: Recorder) -> None:
    """A call of a function on another worker, and its result."""
    with record():
        tg.rpc.rpc_async("worker1", abs, args=(-1,)).wait()


def references(record: Recorder) -> None:
    """A reference to a value on another worker: made, fetched and dropped."""
    with record():
        reference = tg.rpc.remote("worker1", abs, args=(-1,))
        reference.to_here()
        del reference
        gc.collect()
    _settle()


def local_backward(record: Recorder) -> None:
    """The gradient of a product, in one process."""
    weight = tg.ones(3, requires_grad=True)
    with record():
        (weight * 2.0).sum().backward()


def distributed_backward(record: Recorder) -> None:
    """The gradient of a sum that was computed on another worker."""
    weight = tg.ones(3, requires_grad=True)
    with tg.autograd_dist.context() as context:
        loss = tg.rpc.rpc_sync("worker1", tg.mul, args=(weight, 2.0)).sum()
        with record():
            tg.autograd_dist.backward(context, [loss])


def run(record: Recorder) -> None:
    """A job of two workers that do nothing, from the command line to its summary: the launcher's own process."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "nothing.py")
        script.write_text("")
        arguments = ["telegrad", "run", "-n", "2", "--log-dir", str(Path(folder, "logs")), str(script)]
        before, sys.argv = sys.argv, arguments
        try:
            with record(), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
                command_line()
        finally:
            sys.argv = before


def _settle() -> None:
    # The messages that free a value are sent after the last reference is gone; a call to the owner comes after them.
    tg.rpc.rpc_sync("worker1", abs, args=(-1,))


JOURNEYS: list[tuple[str, Callable[[Recorder], None], int]] = [  # title, journey, number of runs
    ("`rpc_async` there and back", calls, 300),
    ("`remote`, `to_here`, drop", references, 300),
    ("Local backward", local_backward, 5),
    ("Distributed backward", distributed_backward, 100),
    ("`telegrad run`", run, 7),
]


ON_TWO_WORKERS = (calls, references, distributed_backward)


@contextlib.contextmanager
def _two_workers() -> Iterator[None]:
    with in_process_cluster("worker0", "worker1", make_lane=partial(GrpcLane, KINDS)) as agents, agents[0].use():
        yield


# -- the page


def page() -> str:
    """Run every journey and return the text of the page."""
    record = Recorder()
    threading.setprofile(record.profile)
    sys.setprofile(record.profile)
    sections, rows = [], []
    try:
        for title, journey, runs in JOURNEYS:
            shortest = _shortest(journey, record, runs)
            rows.append(_row(title, shortest))
            sections.append(_section(title, journey, shortest))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return "\n".join([INTRODUCTION, TABLE, *rows, "", *sections])


INTRODUCTION = """# Journeys

The functions of the package that five usual calls pass through, thread by thread, each once and in the order of its first
call. Written by `python docs/design/write_journeys.py`, which records them while they run: two workers in one process, over
a socket. A *hop* is a step from one file to another. A call *upwards* goes from a layer into a higher one: those are handlers
and interceptors that the higher layer gave to the agent, and no imports.
"""
TABLE = "| journey | files | functions | hops | calls upwards |\n|---|---|---|---|---|"


def _shortest(journey: Callable[[Recorder], None], record: Recorder, runs: int) -> Recorder:
    recorded = []
    with _two_workers() if journey in ON_TWO_WORKERS else contextlib.nullcontext():
        journey(Recorder())
        for _ in range(runs):
            journey(record)
            recorded.append(copy.copy(record))
    return min(recorded, key=lambda run: (run.hops, run.files))


def _row(title: str, record: Recorder) -> str:
    return f"| {title} | {record.files} | {record.functions} | {record.hops} | {len(record.upward)} |"


def _section(title: str, journey: Callable[[Recorder], None], record: Recorder) -> str:
    lines = [f"## {title}", "", str(journey.__doc__), ""]
    for thread, path in record.paths.items():
        lines += [f"Thread `{thread}`:", "", *_stops(path), ""]
    if record.upward:
        lines += ["Upwards:", ""]
        lines += [f"* `{one[0]}:{one[1]}` → `{two[0]}:{two[1]}`" for one, two in record.upward]
        lines.append("")
    return "\n".join(lines)


def _stops(path: dict[Step, None]) -> Iterator[str]:
    number, here, functions = 0, "", []
    for file, function in [*path, ("", "")]:
        if file != here and functions:
            number += 1
            yield f"{number}. `{here}`: {', '.join(functions)}"
            functions = []
        here = file
        functions.append(f"`{function}`")


if __name__ == "__main__":
    text = page()
    if "--print" in sys.argv[1:]:
        print(text)
    else:
        PAGE.write_text(text)
