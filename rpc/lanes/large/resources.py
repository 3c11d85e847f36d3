"""``Resources``: memory for large frames that the sessions of a lane share, and its bounds."""

from __future__ import annotations

from typing import NamedTuple

from .allowance import Allowance, share_of_process
from .buffers import Buffers


class Resources(NamedTuple):
    """Resources for large frames, shared by the sessions of a lane.

    Attributes:
        lending: allowance for segments that are lent.
        borrowing: allowance for segments of peers.
        buffers: memory for arrays that arrive as bytes.
    """

    lending: Allowance
    borrowing: Allowance
    buffers: Buffers


def new_resources() -> Resources:
    """Return new resources for a lane."""
    return Resources(share_of_process(), share_of_process(), Buffers())
