"""Affine maps."""

from __future__ import annotations

from ...core import linear

__all__ = ["linear"]
