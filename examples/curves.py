"""Picture of the examples on several workers: curves over steps, each with a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from telegrad.examples.figures import COLOURS, dress, running_mean, save_figure

WINDOW = 15  # steps in the running mean
STYLES = ["-", (0, (4, 2)), (0, (1, 1))]  # so that equal lines are all seen


def curves(path: Path, title: str, lines: Mapping[str, Sequence[float]], horizontal: str, vertical: str) -> None:
    """Write a picture of one line or several, and print where it is; without matplotlib, print that.

    Args:
        path: file to write.
        title: above the picture.
        lines: by name, a value for each step.
        horizontal: name of the steps.
        vertical: name of the values.
    """

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 1)
        for number, (name, values) in enumerate(lines.items()):
            colour, steps = COLOURS[number % len(COLOURS)], np.arange(1, len(values) + 1)
            axes.plot(steps, values, ".", color=colour, alpha=0.35, markersize=4, markeredgewidth=0)
            mean, style = running_mean(np.array(values), WINDOW), STYLES[number % len(STYLES)]
            axes.plot(steps, mean, color=colour, linewidth=1.8, linestyle=style, label=name)
        dress(axes, "", horizontal, vertical)
        axes.legend(frameon=False, title=f"lines: mean of {WINDOW}", alignment="left", handlelength=3)

    save_figure(path, title, (8, 4.8), draw)
