"""Start of an example's workers: a launcher or ``mpiexec`` has started them already, else the script starts them."""

from __future__ import annotations

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
    place = tg.launcher.launched()
    if place is not None:
        work(*place, *args)
    else:
        tg.launcher.spawn(work, args=(workers, *args), nprocs=workers)
