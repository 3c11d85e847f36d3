"""Picture of a training: the loss of every trainer on the left, accuracies on the right, the final one marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from telegrad.examples.figures import COLOURS, INK, dress, running_mean, save_figure
from telegrad.examples.ps_model import least_loss

if TYPE_CHECKING:
    from telegrad.examples.ps_trainer import History


def save_picture(histories: Sequence[History], mode: str, accuracy: float, path: Path) -> None:
    """Write the picture, and print where it is; ``accuracy`` is that of the saved model, between 0 and 1."""
    trainers = f"{len(histories)} trainer{'s' if len(histories) != 1 else ''}"

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        draw_losses(left, histories)
        draw_accuracies(right, histories, accuracy)

    save_figure(path, f"Handwritten digits: one parameter server, {trainers}, {mode} mode", (11, 4.8), draw)


def draw_losses(axes: Any, histories: Sequence[History]) -> None:
    """Draw the loss of every step as a faint dot, and the mean of each epoch's steps as a line."""
    window = len(histories[0].loss) // len(histories[0].held_out)
    for index, history in enumerate(histories):
        loss, colour = np.array(history.loss) - least_loss(), COLOURS[index % len(COLOURS)]
        steps = np.arange(1, len(loss) + 1)
        axes.plot(steps, loss, ".", color=colour, alpha=0.2, markersize=2.5, markeredgewidth=0)
        axes.plot(steps, running_mean(loss, window), color=colour, linewidth=1.8, label=f"trainer{index}")
    axes.set_yscale("log")
    dress(axes, "Loss on the trainers' own batches", "step", "cross-entropy above the least possible")
    axes.legend(frameon=False, loc="upper right", title=f"lines: mean of {window} steps")


def draw_accuracies(axes: Any, histories: Sequence[History], accuracy: float) -> None:
    """Draw accuracies: each trainer's own batches in its colour, held-out digits in black, the saved model as a dot."""
    epochs = np.arange(1, len(histories[0].held_out) + 1)
    for index, history in enumerate(histories):
        colour = COLOURS[index % len(COLOURS)]
        percent = np.array(history.accuracy) * 100
        axes.plot(epochs, percent, color=colour, linewidth=1.4, label=f"trainer{index}, its own batches")
    held_out = np.mean([history.held_out for history in histories], axis=0) * 100
    axes.plot(epochs, held_out, color=INK, linewidth=2.4, label="held-out digits")
    dress(axes, "Accuracy", "epoch", "right answers (%)")
    axes.set_ylim(lowest(histories), 100.5)
    mark_result(axes, float(epochs[-1]), accuracy)
    axes.legend(frameon=False, loc="lower right")


def mark_result(axes: Any, epoch: float, accuracy: float) -> None:
    """Draw a dot at the end of the training, with its accuracy in words."""
    axes.plot(epoch, accuracy * 100, "o", color=INK, markersize=8, clip_on=False)
    axes.annotate(
        f"{accuracy:.1%}\nof the held-out digits",
        (epoch, accuracy * 100),
        xytext=(0, -22),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=12,
        fontweight="bold",
        color=INK,
    )


def lowest(histories: Sequence[History]) -> float:
    """Return where the accuracy axis begins, in percent. The first, steep epochs may be left out, so that others are seen."""
    points = np.concatenate([history.held_out for history in histories])
    return float(np.clip(np.floor(np.quantile(points, 0.2) * 20) * 5 - 5, 0, 90))
