"""Cases of the RPC benchmark, each one function for all libraries; ``all.py`` lists them."""

from .base import FIGURES, Case, Figure, Turn

__all__ = ["FIGURES", "Case", "Figure", "Turn"]
