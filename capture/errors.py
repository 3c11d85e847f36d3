"""``Unrecordable``: the reason why a call cannot be recorded."""

from __future__ import annotations


class Unrecordable(Exception):
    """Raised where a recording must end; its text is the reason that users read."""
