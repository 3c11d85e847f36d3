"""Draw the picture of ``docs/profiling.md``: one step of the parameter server, from the trace of a real run.

Running this file trains for an epoch with a server and two trainers, each a process of its own, under a profile at the server,
and writes ``trace.svg`` beside it. ``--trace FILE`` keeps the trace, for Perfetto.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import telegrad as tg
from telegrad.examples.parameter_server import trainer_name
from telegrad.examples.ps_options import Options
from telegrad.examples.ps_progress import Board
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import Trainer
from telegrad.examples.start import start

FOLDER = Path(__file__).parent
TRAINERS, STEP = 2, "rpc_sync#forward(trainer0 -> server)"
WIDTH, LEFT, ROW, TOP = 1100, 110, 17, 34
LABEL = 40  # width of a label of the scale of time
COLOURS = {"rpc": "#FCE8D5", "served": "#DCEBF7", "backward": "#E4DCF2", "operation": "#DDF0DD"}


class Slice(NamedTuple):
    """A slice of the trace: times in microseconds."""

    name: str
    worker: str
    thread: int
    start: float
    end: float
    kind: str


def work(rank: int, world_size: int, trace: Path) -> None:
    """Run one worker; the server trains under a profile and writes the trace."""
    name = "server" if rank == 0 else trainer_name(rank - 1)
    tg.rpc.init_rpc(name, rank=rank, world_size=world_size)
    if rank == 0:
        train(trace)
    tg.rpc.shutdown()


def train(trace: Path) -> None:
    """Let the trainers train for an epoch, and write what the profile has of it."""
    options = Options(epochs=1, trainers=TRAINERS, quiet=True)
    server, board = tg.RRef(ParameterServer(options)), tg.RRef(Board(TRAINERS, options.epochs, True))
    trainers = [tg.rpc.remote(trainer_name(i), Trainer, args=(server, options, i)) for i in range(TRAINERS)]
    with tg.profiler.profile() as profiled:
        tg.futures.wait_all([trainer.rpc_async(timeout=0).train(board) for trainer in trainers])
    profiled.export_chrome_trace(trace)


def slices(trace: list[dict[str, Any]]) -> list[Slice]:
    """Return the slices of threads in a trace."""
    workers = {row["pid"]: row["args"]["name"].split()[0] for row in trace if row["name"] == "process_name"}
    return [
        Slice(row["name"], workers[row["pid"]], row["tid"], row["ts"], row["ts"] + row["dur"], kind_of(row))
        for row in trace
        if row["ph"] == "X"
    ]


def kind_of(row: dict[str, Any]) -> str:
    """Return the kind of a slice, which decides its colour."""
    if row["name"].endswith("#remote_call"):
        return "served"
    return "rpc" if row["cat"] == "async" else "backward" if row["cat"] == "backward" else "operation"


def one_step(found: list[Slice]) -> list[Slice]:
    """Return what happened in a step in the middle: from a trainer's forward until its next one."""
    starts = sorted(each.start for each in found if each.name == STEP)
    begin, end = starts[len(starts) // 2], starts[len(starts) // 2 + 1]
    return [
        each._replace(start=max(each.start, begin) - begin, end=min(each.end, end) - begin)
        for each in found
        if each.end > begin and each.start < end and (each.start > begin - 1 or each.end < end)
    ]


def rows(step: list[Slice]) -> Iterator[tuple[str, list[tuple[int, Slice]]]]:
    """Yield each thread that was busy: its worker, and its slices with how deep each lies inside others."""
    for worker, thread in sorted({(each.worker, each.thread) for each in step}):
        placed: list[tuple[int, Slice]] = []
        open_slices: list[Slice] = []
        for each in sorted((one for one in step if (one.worker, one.thread) == (worker, thread)), key=by_start):
            open_slices = [one for one in open_slices if one.end > each.start]
            placed.append((len(open_slices), each))
            open_slices.append(each)
        yield worker, placed


def by_start(each: Slice) -> tuple[float, float]:
    """Order slices so that each comes after those that it lies in."""
    return each.start, -each.end


def draw(step: list[Slice]) -> str:
    """Return the picture as SVG."""
    total = max(each.end for each in step)
    scale = (WIDTH - LEFT - 10) / total
    y, parts, last = TOP, [], ""
    for worker, placed in rows(step):
        if worker != last:
            y += 8
            parts.append(f'<text x="8" y="{y + 13}" font-weight="bold">{escape(worker)}</text>')
            last = worker
        parts += [box(each, LEFT + each.start * scale, y + depth * ROW, scale) for depth, each in placed]
        y += (max(depth for depth, _ in placed) + 1) * ROW + 5
    every = next(each for each in (500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000) if total / each < 16)
    parts += [tick(x, LEFT + x * scale, y) for x in range(0, int(total), every)]
    style = "text{font-family:sans-serif;font-size:10px;fill:#222}"
    page = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 12}" viewBox="0 0 {WIDTH} {y + 12}">'
    white = f'<rect width="{WIDTH}" height="{y + 12}" fill="white"/>'
    return "\n".join([page, f"<style>{style}</style>", white, *parts, "</svg>", ""])


def box(each: Slice, x: float, y: float, scale: float) -> str:
    """Return the box of one slice, with as much of its name as fits."""
    width = max((each.end - each.start) * scale, 0.8)
    name = (
        each.name.replace("#remote_call", "").replace("rpc_sync#", "").replace("rpc_async#", "").replace("aten::", "")
    )
    room = int(width / 5.4)
    text = name if len(name) <= room else name[: room - 1] + "…" if room > 4 else ""
    shown = f'<text x="{x + 3:.1f}" y="{y + 12:.1f}">{escape(text)}</text>' if text else ""
    return (
        f'<g><title>{escape(each.name)}: {each.end - each.start:.0f} µs</title><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{ROW - 2}" fill="{COLOURS[each.kind]}" stroke="#999" stroke-width="0.5"/>{shown}</g>'
    )


def tick(microseconds: int, x: float, bottom: int) -> str:
    """Return a line of the scale of time, with its label to the right of it, or to the left if there is no room."""
    place = f'x="{x + 2:.1f}"' if x + LABEL < WIDTH else f'x="{x - 2:.1f}" text-anchor="end"'
    return (
        f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{bottom}" stroke="#ddd" stroke-width="0.6"/>'
        f'<text {place} y="20">{microseconds / 1000:g} ms</text>'
    )


def main() -> None:
    """Train, and draw a step."""
    parser = argparse.ArgumentParser(description="Draw one step of the parameter server from the trace of a run.")
    parser.add_argument("--trace", type=Path, help="where to keep the trace")
    parser.add_argument("--out", type=Path, default=FOLDER / "trace.svg", help="the picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = (options.trace or Path(folder) / "trace.json").resolve()
        start(work, TRAINERS + 1, (trace,))
        if trace.exists():  # under the launcher, others have nothing to draw
            options.out.write_text(draw(one_step(slices(json.loads(trace.read_text())))))


if __name__ == "__main__":
    main()
