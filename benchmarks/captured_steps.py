"""Benchmark of compiled steps that call a worker: ``python -m telegrad.benchmarks.captured_steps --peer torch=PYTHON``.

Steps of distributed autograd: two layers here, two at another worker or at each of four in a chain, backward, a step of SGD.
And steps of a parameter server's trainer: gradients go there, parameters come back. Each is made eagerly, compiled, and with
PyTorch's RPC, in turns, on one thread each; steps of examples without PyTorch. Times are medians of a step; ratios are medians
of turns. ``--publish`` writes the table of ``docs/compile_across.md``.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import telegrad as tg
from telegrad import rpc
from telegrad.examples.captured_steps import EXAMPLES, Step
from telegrad.launcher import local_cluster

from .contenders import ONE_THREAD
from .environments import find_peers
from .figures import show, show_ratio
from .machine import machine_facts
from .publish import ROOT, head, line, write_between_marks

SCRIPT = Path(__file__).with_name("captured_steps_torch.py")
FORMS = {"1 hop": 1, "4 hops": 4, "parameter server": 0}  # and how many workers have layers
SIZES = (16, 128)
ROWS = 32
WAYS = ("compiled", "eager", "PyTorch")
PAGE = ROOT / "docs" / "compile_across.md"


class Layers(tg.nn.Module):
    """Layers at the other worker."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = tg.nn.Sequential(tg.nn.Linear(size, size), tg.nn.Tanh(), tg.nn.Linear(size, size))

    def forward(self, x: Any) -> Any:
        """Return the result of the layers."""
        return self.layers(x)


class Server:
    """A parameter server of two layers.

    Args:
        parameters: of the layers.
    """

    def __init__(self, parameters: list[Any]) -> None:
        self._parameters = parameters

    def step(self, *gradients: Any) -> list[Any]:
        """Make a step of SGD with the gradients of all parameters, and return these."""
        for parameter, gradient in zip(self._parameters, gradients):
            parameter.sub_(gradient, alpha=0.01)
        return self._parameters


def make_step(size: int, hops: int) -> Callable[[Any, Any], Any]:
    """Return a step of a model of several workers.

    Args:
        size: features of each layer.
        hops: how many workers have layers, each of which gets the results of the one before.
    """
    if not hops:
        return make_trainer(size)
    remotes = [tg.RemoteModule(f"worker{rank}", Layers, args=(size,)) for rank in range(1, hops + 1)]
    first, last = tg.nn.Linear(size, size), tg.nn.Linear(size, 1)
    parameters = [rpc.RRef(each) for layer in (first, last) for each in layer.parameters()]
    parameters += [each for remote in remotes for each in remote.remote_parameters()]
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, parameters, lr=0.01)

    def step(x: Any, y: Any) -> Any:
        with tg.autograd_dist.context() as context:
            x = first(x).tanh()
            for remote in remotes:
                x = remote(x)
            loss = (last(x) - y).square().mean()
            tg.autograd_dist.backward(context, [loss])
            optimizer.step(context)
        return loss.detach()

    return step


def make_trainer(size: int) -> Callable[[Any, Any], Any]:
    """Return a step of a trainer whose parameters a server has, too.

    Args:
        size: features of each layer.
    """
    model = tg.nn.Sequential(tg.nn.Linear(size, size), tg.nn.Tanh(), tg.nn.Linear(size, 1))
    own = list(model.parameters())
    server = rpc.remote("worker1", Server, args=([each.detach().clone() for each in own],))

    def step(x: Any, y: Any) -> Any:
        loss = (model(x) - y).square().mean()
        loss.backward()
        fresh = server.rpc_sync().step(*[each.grad for each in own])
        with tg.no_grad():
            for parameter, value in zip(own, fresh):
                parameter.copy_(value)
                parameter.grad = None
        return loss.detach()

    return step


def time_of(step: Callable[..., Any], batch: Sequence[Any], steps: int) -> float:
    """Return the median time of some steps in seconds."""
    found = []
    for _ in range(steps):
        began = time.perf_counter()
        step(*batch)
        found.append(time.perf_counter() - began)
    return median(found)


class Torch:
    """The same with PyTorch, in processes of its own.

    Args:
        python: interpreter that has PyTorch.
        size: features of each layer.
        hops: how many workers have layers.
    """

    def __init__(self, python: str, size: int, hops: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [python, "-W", "ignore", str(SCRIPT)]
        more = [str(port), str(size), str(ROWS), str(hops)]
        self._others = [subprocess.Popen([*command, str(rank), *more]) for rank in range(1, max(hops, 1) + 1)]
        self._first = subprocess.Popen([*command, "0", *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.time_of(5)

    def time_of(self, steps: int) -> float:
        """Return the median time of some steps in seconds."""
        assert self._first.stdin is not None and self._first.stdout is not None
        print(steps, file=self._first.stdin, flush=True)
        return float(self._first.stdout.readline())

    def close(self) -> None:
        """End its processes."""
        self._first.communicate(timeout=60)
        for other in self._others:
            other.wait(60)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit status."""
    own = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.captured_steps", description=__doc__)
    own.add_argument("--peer", action="append", default=[], metavar="torch=PYTHON", help="interpreter that has PyTorch")
    forms = [*FORMS, *EXAMPLES]
    own.add_argument("--form", action="append", choices=forms, help="form of the step (default: all)")
    own.add_argument("--publish", action="store_true", help=f"write the table of {PAGE.name}")
    own.add_argument("--rounds", type=int, default=11, help="turns of each (default %(default)s)")
    own.add_argument("--steps", type=int, default=50, help="steps of a turn (default %(default)s)")
    options = own.parse_args(arguments)
    if not ONE_THREAD.items() <= os.environ.items():  # NumPy reads them when it is imported
        again = [
            sys.executable,
            "-m",
            "telegrad.benchmarks.captured_steps",
            *(sys.argv[1:] if arguments is None else arguments),
        ]
        return subprocess.run(again, env={**os.environ, **ONE_THREAD}).returncode
    python = find_peers(options.peer).get("torch")
    rows: list[tuple[str, ...]] = []
    for form in options.form or forms:
        sizes = SIZES if form in FORMS else (0,)
        rows += [compare(form, size, python, options.rounds, options.steps) for size in sizes]
    if options.publish:
        write_between_marks(PAGE, table(rows))
    return 0


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Return the table of the page, in Markdown, with facts of the machine."""
    yield from head("", *(name for way in WAYS for name in ([way] if way == WAYS[0] else [way, "ratio"])))
    for row in rows:
        yield line(*row)
    yield ""
    facts = {**machine_facts(), "load at the end": f"{os.getloadavg()[0]:.0f}"}
    yield "; ".join(f"{name}: {value}" for name, value in facts.items()) + "."


def compare(form: str, size: int, python: str | None, rounds: int, steps: int) -> tuple[str, ...]:
    """Measure the ways in turns, print their times and ratios, and return them as cells of a table.

    Args:
        form: of the step, or an example.
        size: features of each layer; 0 for an example.
        python: interpreter that has PyTorch, if there is one.
        rounds: turns of each way.
        steps: steps of a turn.
    """
    workers = max(FORMS[form], 1) + 1 if size else EXAMPLES[form][0]
    torch = Torch(python, size, FORMS[form]) if python and size else None
    try:
        with local_cluster(workers):
            ways = {way: partial(time_of, *step_of(form, size, way == WAYS[0]), steps) for way in WAYS[:2]}
            if torch is not None:
                ways[WAYS[2]] = partial(torch.time_of, steps)
            turns = [{name: way() for name, way in ways.items()} for _ in range(rounds + 1)][1:]
            del ways
            gc.collect()  # a step and its plan are a cycle, which has references
    finally:
        if torch is not None:
            torch.close()
    return cells_of(f"{form}, {size} features" if size else form, turns)


def step_of(form: str, size: int, captured: bool) -> Step:
    """Return a step, compiled or as it is, and its arguments.

    Args:
        form, size: as for ``compare``.
        captured: whether it is compiled.
    """
    if not size:
        return EXAMPLES[form][1](captured)
    step = make_step(size, FORMS[form])
    return tg.compile(step) if captured else step, (tg.randn(ROWS, size), tg.randn(ROWS, 1))


def cells_of(name: str, turns: Sequence[dict[str, float]]) -> tuple[str, ...]:
    """Print the times and ratios of a step, and return them as cells of a table.

    Args:
        name: of the step.
        turns: the time of each way, in seconds, in each turn.
    """
    cells = [name]
    print(name, flush=True)
    for way in WAYS:
        if way not in turns[0]:
            cells += ["", ""]
            continue
        ratio = show_ratio(median(turn[WAYS[0]] / turn[way] for turn in turns))
        time = show([turn[way] for turn in turns], "s")
        print(f"  {way:10} {time:>8}   compiled / it {ratio}")
        cells += [time] if way == WAYS[0] else [time, ratio]
    return tuple(cells)


if __name__ == "__main__":
    sys.exit(main())
