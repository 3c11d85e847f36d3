"""Training loop of the examples in one process: a one-cycle learning rate, a progress bar, held-out measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import telegrad as tg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from telegrad.examples.local_options import Options

MEASURES = 20  # evaluations on held-out data
MAX_GRADIENT_NORM = 1.0


@dataclass
class History:
    """History of a training: the loss of every step, and the held-out measure after some of them."""

    loss: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)


def train(
    model: tg.nn.Module, loss_of_a_batch: Callable[[], tg.Tensor], measure: Callable[[], float], options: Options
) -> History:
    """Train for ``options.steps`` steps, and return the history.

    Args:
        model: to train; it is left in evaluation mode.
        loss_of_a_batch: draws a batch and computes its loss, with gradients.
        measure: evaluates held-out data; called with the model in evaluation mode.
        options: steps and learning rate.
    """
    optimizer = tg.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = tg.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, total_steps=options.steps + 1)
    history = History()
    with bar(options) as advance:
        for step in range(1, options.steps + 1):
            history.loss.append(take_step(model, loss_of_a_batch, optimizer))
            schedule.step()
            if step == options.steps or step % max(options.steps // MEASURES, 1) == 0:
                model.eval()
                with tg.no_grad():
                    history.held_out.append(measure())
                history.steps.append(step)
                model.train()
            advance(history)
    model.eval()
    return history


def take_step(model: tg.nn.Module, loss_of_a_batch: Callable[[], tg.Tensor], optimizer: tg.optim.Optimizer) -> float:
    """Take one step of the optimizer with the clipped gradient of one batch; return the batch's loss."""
    optimizer.zero_grad()
    loss = loss_of_a_batch()
    loss.backward()
    tg.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
    optimizer.step()
    return float(loss.item())


@contextmanager
def bar(options: Options) -> Iterator[Callable[[History], None]]:
    """Show a progress bar during the block; yield a function that advances it and shows the last numbers."""
    console = Console()
    progress = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  held-out {task.fields[held_out]:.3f}"),
        TimeElapsedColumn(),
        console=console,
        disable=options.quiet or not console.is_terminal,
    )
    task = progress.add_task("", total=options.steps, loss=float("nan"), held_out=float("nan"))

    def advance(history: History) -> None:
        held_out = history.held_out[-1] if history.held_out else float("nan")
        progress.update(task, advance=1, loss=history.loss[-1], held_out=held_out)
        at_a_measure = history.steps and history.steps[-1] == len(history.loss)
        if at_a_measure and not console.is_terminal and not options.quiet:
            print(f"step {len(history.loss)}: loss {history.loss[-1]:.3f}, held-out {held_out:.3f}", flush=True)

    with progress:
        yield advance
