"""``Timeline``: which stage of a pipeline was busy with which micro-batch when, as numbers and as a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ..core.extend import svg_page
from .schedules import BACKWARD, FORWARD, Action, bubble

WIDTH, LEFT, ROW, HEIGHT, MARGIN = 900, 110, 46, 34, 16  # pixels
ACTION_COLOURS = {FORWARD: "#9CC5E8", BACKWARD: "#F5B98A"}


class Busy(NamedTuple):
    """A piece of work of a stage, in seconds from the start of the step."""

    stage: int
    action: Action
    start: float
    end: float


class Timeline:
    """The work of one step of a pipeline.

    Args:
        names: of the stages' workers.
        work: of all stages.
        microbatches: their number.
    """

    def __init__(self, names: Sequence[str], work: Sequence[Busy], microbatches: int) -> None:
        self.names = list(names)
        self.work = list(work)
        self.microbatches = microbatches

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        busy: Sequence[Sequence[tuple[Action, float, float]]],
        offsets: Sequence[float],
        microbatches: int,
    ) -> Timeline:
        """Return the timeline of what stages report.

        Args:
            names: of the stages' workers.
            busy: action, start and end for each stage, by its own clock.
            offsets: what to add to each clock for one that all share.
            microbatches: their number.
        """
        work = [
            Busy(stage, action, start + offsets[stage], end + offsets[stage])
            for stage, some in enumerate(busy)
            for action, start, end in some
        ]
        first = min(each.start for each in work)
        return cls(
            names, [each._replace(start=each.start - first, end=each.end - first) for each in work], microbatches
        )

    def seconds(self) -> float:
        """Return how long the step took, from the first start to the last end."""
        return max(each.end for each in self.work)

    def bubble(self) -> float:
        """Return the share of time in which stages were idle, 0 to 1."""
        return 1 - sum(each.end - each.start for each in self.work) / (len(self.names) * self.seconds())

    def theory(self) -> float:
        """Return that share if all pieces of work took equally long and messages took no time: (p - 1) / (m + p - 1)."""
        return bubble(len(self.names), self.microbatches)

    def draw(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write a picture: a row for each stage, blue forwards and orange backwards with the numbers of their micro-batches.

        Args:
            path: SVG file to write.
            title: above the picture, before the bubble's size.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg(title))

    def svg(self, title: str = "") -> str:
        """Return the picture as SVG.

        Args:
            title: see ``draw``.
        """
        from html import escape

        told = f"{self.seconds() * 1e3:.1f} ms, bubble {self.bubble():.0%} (in theory {self.theory():.0%})"
        heading = escape(f"{title}: {told}" if title else told)
        elements = [f'<text x="{WIDTH / 2}" y="{MARGIN + 6}" font-size="15" fill="#222">{heading}</text>']
        for stage, name in enumerate(self.names):
            middle = self._top(stage) + HEIGHT / 2 + 5
            label = escape(f"{stage}: {name}")
            elements.append(f'<text x="{LEFT / 2}" y="{middle:g}" font-size="13" fill="#222">{label}</text>')
        elements += [element for each in self.work for element in self._box(each)]
        return svg_page(WIDTH, self._top(len(self.names)) + MARGIN, elements)

    def _top(self, stage: int) -> float:
        return 2 * MARGIN + 10 + stage * ROW

    def _box(self, each: Busy) -> list[str]:
        scale = (WIDTH - LEFT - MARGIN) / self.seconds()
        x, width, y = LEFT + each.start * scale, (each.end - each.start) * scale, self._top(each.stage)
        colour = ACTION_COLOURS[each.action.kind]
        box = (
            f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{HEIGHT}" fill="{colour}" stroke="#555" '
            'stroke-width="0.7"/>'
        )
        if width < 9 * len(str(each.action.microbatch)):
            return [box]
        text = (
            f'<text x="{x + width / 2:.2f}" y="{y + HEIGHT / 2 + 5:g}" font-size="13">{each.action.microbatch}</text>'
        )
        return [box, text]
