"""The server's board: on a terminal a bar for each trainer, fed by the trainers' calls; elsewhere it draws nothing."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Board:
    """A bar for each trainer while the block lasts."""

    def __init__(self, trainers: int, epochs: int, quiet: bool) -> None:
        console = Console()
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3f}  held-out {task.fields[accuracy]:.1%}"),
            TimeElapsedColumn(),
            console=console,
            # Behind the launcher's pipes every trainer prints lines of its own.
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
        """A trainer has finished ``epochs`` epochs; ``accuracy`` is between 0 and 1."""
        self._progress.update(self._tasks[trainer], completed=epochs, loss=loss, accuracy=accuracy)
