"""Starts the workers of an example: the launcher has done it already, or else the script does it itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import telegrad as tg


def start(work: Callable[..., object], workers: int, args: tuple[Any, ...] = ()) -> None:
    """Call ``work(rank, world_size, *args)`` in every worker; ``workers`` is how many to start when run alone.

    Raises:
        telegrad.launcher.ProcessException: a worker failed (alone only; the launcher looks after its own).
    """
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), *args)
    else:
        tg.launcher.spawn(work, args=(workers, *args), nprocs=workers)
