"""The picture of a run: the loss of every trainer on the left, accuracies on the right, the final one marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from telegrad.examples.ps_trainer import History

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: told apart by everybody
INK = "#222222"
SMOOTH_STEPS = 15


def draw(histories: Sequence[History], mode: str, accuracy: float, path: Path) -> None:
    """Write the picture; ``accuracy`` is that of the saved model, between 0 and 1."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Not pyplot: it keeps figures in a global and looks for a display.
    figure = Figure(figsize=(11, 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    trainers = f"{len(histories)} trainer{'s' if len(histories) != 1 else ''}"
    figure.suptitle(f"Handwritten digits: one parameter server, {trainers}, {mode} mode", fontsize=14, color=INK)
    left, right = figure.subplots(1, 2)
    draw_losses(left, histories)
    draw_accuracies(right, histories, accuracy)
    figure.savefig(path)


def draw_losses(axes: Any, histories: Sequence[History]) -> None:
    """Every step faint, a running mean on top."""
    for index, history in enumerate(histories):
        loss, colour = np.array(history.loss), COLOURS[index % len(COLOURS)]
        axes.plot(np.arange(1, len(loss) + 1), loss, color=colour, alpha=0.18, linewidth=0.8)
        smooth = running_mean(loss)
        axes.plot(np.arange(1, len(loss) + 1), smooth, color=colour, linewidth=1.8, label=f"trainer{index}")
    axes.set_yscale("log")
    dress(axes, "Loss on the trainers' own batches", "step", "cross-entropy (log scale)")
    axes.legend(frameon=False, loc="upper right", title=f"mean over {SMOOTH_STEPS} steps")


def draw_accuracies(axes: Any, histories: Sequence[History], accuracy: float) -> None:
    """Each trainer's own batches in its colour, the held-out digits in black, the saved model as a dot."""
    epochs = np.arange(1, len(histories[0].held_out) + 1)
    for index, history in enumerate(histories):
        colour = COLOURS[index % len(COLOURS)]
        axes.plot(
            epochs, np.array(history.accuracy) * 100, color=colour, linewidth=1.2, label=f"trainer{index}, batches"
        )
    held_out = np.mean([history.held_out for history in histories], axis=0) * 100
    axes.plot(epochs, held_out, color=INK, linewidth=2.2, label="held-out digits")
    axes.plot(epochs[-1], accuracy * 100, "o", color=INK, markersize=7)
    axes.annotate(
        f"saved model: {accuracy:.1%} of the held-out digits",
        (epochs[-1], accuracy * 100),
        xytext=(-14, -58),
        textcoords="offset points",
        ha="right",
        fontsize=11,
        fontweight="bold",
        color=INK,
        arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.8},
    )
    dress(axes, "Accuracy", "epoch", "right answers, %")
    axes.set_ylim(lowest(histories), 100.8)
    axes.legend(frameon=False, loc="lower right")


def running_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the last ``SMOOTH_STEPS`` values, of fewer at the start."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - SMOOTH_STEPS, 0)
    smooth: NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return smooth


def lowest(histories: Sequence[History]) -> float:
    """Where the accuracy axis begins: below most points, so that the interesting end is not squeezed."""
    points = np.concatenate([history.held_out for history in histories])
    return float(np.floor(np.quantile(points, 0.1) * 10 - 0.5) * 10)


def dress(axes: Any, title: str, horizontal: str, vertical: str) -> None:
    """Title, labels, a light grid, no box."""
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
