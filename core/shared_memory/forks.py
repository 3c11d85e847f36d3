"""Number of times that this process has forked: memory that it shared before may be in use in a child."""

from __future__ import annotations

import os

_forks = 0


def fork_count() -> int:
    """Return how many times this process has forked. After a fork, a child may use all that was mapped at that time."""
    return _forks


def _forking() -> None:
    global _forks
    _forks += 1


os.register_at_fork(before=_forking)
