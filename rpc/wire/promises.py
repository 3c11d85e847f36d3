"""Promises: what stands in the arguments of a request for a value that the sender may not have.

The pickle has an index in the place of each, as for a reference. The receiver finds the value before its function starts.
"""

from __future__ import annotations

from typing import Any


class Promise:
    """Stand-in for a value in the arguments of a request."""

    __slots__ = ()

    def known(self, to: int) -> tuple[Any] | None:
        """Return the value in a tuple, if it is here and is to be sent as it is to worker number ``to``; else ``None``."""
        return None

    def arrived(self) -> Any:
        """Return the value, if this came in a call on a mesh: it is here, and others get the stand-in."""
        raise NotImplementedError
