"""Remote references: ``RRef``, ``remote``."""

from .rref import RRef, remote

__all__ = ["RRef", "remote"]
