"""``Explained``: the part of ``Compiled`` that tells what was recorded."""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .branches import each_of
from .description import Description, DrawnPart
from .division import Segment
from .entries import Entry
from .picture import drawn_part, picture
from .plan import Plan
from .report import plan_lines, report
from .segments import Segments


class Explained:
    """Base of ``Compiled``: its plans, a text and a picture of them, and warnings."""

    _function: Callable[..., Any]
    _entries: OrderedDict[Any, Entry]
    _lock: threading.Lock
    _segment: Segment | None
    _segments: Segments
    _said: set[str]

    def explain(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a text about the plans: what was recorded, what was not and why, chains, and the memory that they take.

        Args:
            path: a file to write, with the ending ".svg": a picture of the plan that was used last, in all its parts, and of
                the workers that it calls, and what runs eagerly.

        Raises:
            ValueError: there is no plan to draw, or the path has another ending.
        """
        entries = self._known()
        if path is not None:
            if not os.fspath(path).endswith(".svg"):
                raise ValueError(
                    f"explain() draws SVG; give it a path that ends with .svg, and not {os.fspath(path)!r}"
                )
            drawn = self._drawn()
            if not drawn:
                raise ValueError(f"{self._name}() has no plan to draw; call it three times first")
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture(drawn))
        parts = [each.explain() for each in self._segments.used] if self._segment is None else []
        return "\n".join([report(self._name, entries, bool(parts)), *parts])

    def description(self) -> Description:
        """Return the plan that was used last, for workers that call this; without a plan, the reason."""
        if not (plans := self.plans()):
            return Description(self._reasons()[-1:] or ["no plan yet"])
        return Description(plan_lines(plans[-1]), self._drawn())

    def _reasons(self) -> list[str]:
        """Return why calls run eagerly."""
        return list(dict.fromkeys(f"eager: {each.reason}" for each in self._known() if each.reason))

    def _drawn(self) -> list[DrawnPart]:
        """Return why calls run eagerly, and the parts of the plan that was used last, of each segment if there are some."""
        reasons = [DrawnPart(each, "") for each in self._reasons()]
        segments = [each for each in self._segments.used if each.plans()] if self._segment is None else []
        if segments:
            return [*reasons, *(part for each in segments for part in each._drawn())]
        return reasons + [part for plan in self.plans()[-1:] for part in self._drawn_plan(plan)]

    def _drawn_plan(self, plan: Plan) -> list[DrawnPart]:
        """Return the parts of a plan: what it does with other workers, its calls, and those of the workers that it calls."""
        title = "calls" if self._segment is None else self._name.partition(", ")[2]
        told = [(DrawnPart(each.text, ""), each.description()) for each in plan.remote]
        parts = [text for text, found in told if found is None]
        parts += [drawn_part(*each) for each in zip([title, *map(str, plan.looks)], plan.sources)]
        for text, found in told:
            if found is not None:
                parts += [text, *(found.parts or [DrawnPart(line, "") for line in found.lines])]
        return parts

    def plans(self) -> list[Plan]:
        """Return the plans, for ``Plan.save``: those of each kind of arguments, the kind that was used last at the end."""
        parts = [plan for each in self._segments.used for plan in each.plans()] if self._segment is None else []
        return [plan for entry in self._known() for plan in reversed(each_of(entry.plans))] + parts

    def _known(self) -> list[Entry]:
        with self._lock:
            return list(self._entries.values())

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", type(self._function).__name__)

    def _tell(self, text: str) -> None:
        """Warn that calls run eagerly, or a part of them."""
        self._segments.owner._say(f"{self._segments.owner._name}() {text}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            warnings.warn(text, stacklevel=4)
