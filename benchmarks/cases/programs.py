"""Programs for PyTorch's RPC in ``tests/programs/torch``: their training, again and again in one job.

Each worker loads the program as it is, or with its remote calls changed to Telegrad's. A figure is the time of one step of the
loop. The names of workers and the number of steps are constants of the programs, and set here.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from ..libraries import api_here
from ..libraries.torch_model import worker_name
from .base import Case, Figures, Turn, take_times

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "programs" / "torch"
STEPS = 20
CONSTANTS = {"STEPS": STEPS, "SERVER": worker_name(1), "OBSERVER": "worker{}"}

Losses = list[float]


def load(name: str) -> None:
    """Load a program on this worker under its own name, by which its functions are found when they are called."""
    if name not in sys.modules:
        file = FOLDER / f"{name}.py"
        module = sys.modules[name] = ModuleType(name)
        exec(compile(api_here().program(file.read_text()), str(file), "exec"), module.__dict__)
        vars(module).update({constant: value for constant, value in CONSTANTS.items() if constant in vars(module)})


def measure(name: str, train: Callable[[Any], Losses], steps: int = STEPS) -> Callable[[Turn], Figures]:
    """Return a measurement of a program.

    Args:
        name: of its file.
        train: trains a new model of the program, and returns the losses.
        steps: which ``train`` does.
    """

    def measured(turn: Turn) -> Figures:
        for rank in range(1, turn.workers):
            turn.library.call(rank, load, name)
        load(name)
        program, losses = sys.modules[name], Losses()

        def run() -> float:
            start = time.perf_counter()
            losses[:] = train(program)
            return (time.perf_counter() - start) / steps

        return {**take_times(run, turn.seconds), **numbered(losses)}

    return measured


def numbered(losses: Losses) -> Figures:
    """Return losses as figures, which the file has and the table has not."""
    return {f"loss {number}": loss for number, loss in enumerate(losses)}


@contextmanager
def printed() -> Iterator[Losses]:
    """Collect the losses that a program prints in the block."""
    losses = Losses()
    with redirect_stdout(io.StringIO()) as text:
        yield losses
    losses += losses_in(text.getvalue())


def losses_in(text: str) -> Losses:
    """Return the losses that a program has printed."""
    return [float(line.split()[1]) for line in text.splitlines() if line.startswith("loss ")]


def serve_parameters(program: Any) -> Losses:
    """Train with both trainers, one after the other as the program does; PyTorch refuses to change a model under a backward."""
    calls = api_here().rpc
    calls.rpc_sync(program.SERVER, forget_server)
    trainers = [worker_name(rank) for rank in (0, 2)]
    return [loss for number, name in enumerate(trainers, 1) for loss in calls.rpc_sync(name, train, args=(number,))]


def train(number: int) -> Losses:
    """Be a trainer of the parameter server."""
    losses: Losses = sys.modules["parameter_server"].train(number)
    return losses


def forget_server() -> None:
    """Let the next trainer have a new model on the server."""
    sys.modules["parameter_server"]._server = None  # type: ignore[attr-defined]


def model_language(program: Any) -> Losses:
    """Train the recurrent network."""
    with printed() as losses:
        program.train()
    return losses


def reinforce(program: Any) -> Losses:
    """Play episodes, and train the agent after each."""
    agent, losses = program.Agent(program.OBSERVERS + 1), Losses()
    for _ in range(STEPS):
        agent.run_episode()
        losses.append(agent.finish_episode())
    return losses


def pass_stages(program: Any) -> Losses:
    """Train the network of two stages."""
    with printed() as losses:
        program.run_master()
    return losses


CASES = (
    Case("parameter_server.py", measure("parameter_server", serve_parameters, 2 * STEPS), workers=3),
    Case("rnn.py", measure("rnn", model_language)),
    Case("reinforcement.py", measure("reinforcement", reinforce), workers=3),
    Case("pipeline.py", measure("pipeline", pass_stages), workers=3),
)
PROGRAMS = [case.name for case in CASES if case.name.endswith(".py")]
