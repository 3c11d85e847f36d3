"""Picture of the examples on several workers: curves over steps, each with a name, and parameters of modules by reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import telegrad as tg
from telegrad.examples.ps_picture import COLOURS, INK, dress, running_mean

WINDOW = 15  # steps in the running mean


class Owner:
    """Base class of objects that own a module on some worker, for optimizers on others."""

    module: tg.nn.Module

    def parameter_rrefs(self) -> list[tg.RRef]:
        """Return references to the parameters of the module."""
        return [tg.RRef(parameter) for parameter in self.module.parameters()]


def curves(path: Path, title: str, lines: Mapping[str, Sequence[float]], horizontal: str, vertical: str) -> None:
    """Write a picture of one line or several, and print where it is; without matplotlib, print that.

    Args:
        path: file to write.
        title: above the picture.
        lines: by name, a value for each step.
        horizontal: name of the steps.
        vertical: name of the values.
    """
    if not find_spec("matplotlib"):
        print("no picture: matplotlib is not installed (pip install 'telegrad[examples]')")
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, 1)
    for number, (name, values) in enumerate(lines.items()):
        colour, steps = COLOURS[number % len(COLOURS)], np.arange(1, len(values) + 1)
        axes.plot(steps, values, ".", color=colour, alpha=0.25, markersize=3, markeredgewidth=0)
        axes.plot(steps, running_mean(np.array(values), WINDOW), color=colour, linewidth=1.8, label=name)
    figure.suptitle(title, fontsize=14, color=INK)
    dress(axes, "", horizontal, vertical)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"picture: {path.resolve()}")
