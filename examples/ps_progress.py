"""Progress bars of the trainers on the server's terminal; trainers call it. Without a terminal it draws nothing."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Board:
    """Progress bars, one for each trainer, during a ``with`` block."""

    def __init__(self, trainers: int, epochs: int, quiet: bool) -> None:
        console = Console()
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3f}  held-out {task.fields[accuracy]:.1%}"),
            TimeElapsedColumn(),
            console=console,
            # Under the launcher, whose workers have no terminal, every trainer prints its own lines.
            disable=quiet or not console.is_terminal,
        )
        self._tasks = [
            self._progress.add_task(f"trainer{index}", total=epochs, loss=float("nan"), accuracy=0.0)
            for index in range(trainers)
        ]

    def __enter__(self) -> Board:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def update(self, trainer: int, epochs: int, loss: float, accuracy: float) -> None:
        """Show that a trainer has finished ``epochs`` epochs; ``accuracy`` is between 0 and 1."""
        self._progress.update(self._tasks[trainer], completed=epochs, loss=loss, accuracy=accuracy)
