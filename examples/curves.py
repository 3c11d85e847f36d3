"""Picture of the examples on several workers: curves over steps, each with a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from telegrad.examples.figures import COLOURS, dress, running_mean, save_figure

WINDOW = 15  # steps in the running mean


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
            axes.plot(steps, running_mean(np.array(values), WINDOW), color=colour, linewidth=1.8, label=name)
        dress(axes, "", horizontal, vertical)
        axes.legend(frameon=False)

    save_figure(path, title, (8, 4.8), draw)
