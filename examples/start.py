"""Start of an example's workers: under the launcher they are started already, else the script starts them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import telegrad as tg


def start(work: Callable[..., object], workers: int, args: tuple[Any, ...] = ()) -> None:
    """Call ``work(rank, world_size, *args)`` in every worker.

    Args:
        work: function of one worker.
        workers: how many to start without the launcher.
        args: further arguments of ``work``.

    Raises:
        telegrad.launcher.ProcessException: a worker failed (without the launcher only).
    """
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), *args)
    else:
        tg.launcher.spawn(work, args=(workers, *args), nprocs=workers)
