"""Pictures of the examples: made by matplotlib where it is installed, without a window; and what they draw alike."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito's, for any colour vision
INK = "#222222"


def save_figure(path: Path, title: str, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Write a picture, and print where it is; without matplotlib, print that.

    Args:
        path: file to write.
        title: above the picture.
        size: width and height, in units of 150 pixels.
        draw: draws on the figure.
    """
    if not find_spec("matplotlib"):
        print("no picture: matplotlib is not installed (pip install matplotlib)")
        return
    # Not pyplot: it keeps figures in a global and looks for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=14, color=INK)
    draw(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"picture: {path.resolve()}")


def running_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Return the mean of ``window`` values around each, of fewer at the ends."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    places = np.arange(len(values))
    starts = np.maximum(places - window // 2, 0)
    ends = np.minimum(places + window // 2 + 1, len(values))
    smooth: NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return smooth


def dress(axes: Any, title: str, horizontal: str, vertical: str) -> None:
    """Give axes a title, labels, a light grid, and no box."""
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
