"""Pictures of the examples that train in one process: curves on the left, what was learned on the right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from telegrad.examples.figures import COLOURS, INK, dress, running_mean, save_figure
from telegrad.examples.local_training import History

WINDOW = 25  # steps in the running mean of the loss


def picture(
    path: Path, title: str, history: History, measure: str, show: Callable[[Any, Any], None], scale: float | None = None
) -> None:
    """Write the picture and print where it is; without matplotlib, print that.

    Args:
        path: file to write.
        title: above the picture.
        history: of the training.
        measure: name of the held-out numbers.
        show: draws what was learned, given the figure and the part of it on the right.
        scale: factor of held-out numbers that are of another kind than the loss, and have an axis of their own.
    """

    def draw(figure: Any) -> None:
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
        draw_curves(left.subplots(1, 1), history, measure, scale)
        show(figure, right)

    save_figure(path, title, (12, 4.8), draw)


def draw_curves(axes: Any, history: History, measure: str, scale: float | None) -> None:
    """Draw the loss of every step as dots and a line, and the held-out measure in black."""
    loss = np.array(history.loss)
    steps = np.arange(1, len(loss) + 1)
    axes.plot(steps, loss, ".", color=COLOURS[0], alpha=0.2, markersize=2.5, markeredgewidth=0)
    axes.plot(steps, running_mean(loss, WINDOW), color=COLOURS[0], linewidth=1.8, label="a batch")
    other = axes if scale is None else axes.twinx()
    held_out = np.array(history.held_out) * (1 if scale is None else scale)
    other.plot(history.steps, held_out, color=INK, linewidth=2.2, marker="o", markersize=3.5, label="held out")
    if scale is None:
        dress(axes, "", "step", measure)
        axes.legend(frameon=False)
        return
    dress(axes, "", "step", "loss of a batch")
    axes.yaxis.label.set_color(COLOURS[0])
    other.set_ylabel(measure, color=INK)
    other.spines[["top"]].set_visible(False)
