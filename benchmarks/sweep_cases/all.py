"""List of all operations of the sweep."""

from __future__ import annotations

from . import compiled, elementwise, layers, linear, reductions, shapes

CASES = (*elementwise.CASES, *reductions.CASES, *shapes.CASES, *linear.CASES, *layers.CASES, *compiled.CASES)
