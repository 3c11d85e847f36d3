"""``run``: the arithmetic of an optimizer, block by block by NumPy's calls, or as a layer above runs it in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..core.extend import Array
from .arithmetic import in_blocks, with_spare

Update = Callable[..., None]
Runner = Callable[[Update, Sequence[Any], Sequence[Array]], bool]
_RUNNER: ContextVar[Runner | None] = ContextVar("runner", default=None)


@contextmanager
def updates_run_by(runner: Runner) -> Iterator[None]:
    """Let a function run the updates of steps in this ``with`` block.

    Args:
        runner: gets the arguments of ``run``; it returns whether it has done the update, else NumPy does it.
    """
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def run(update: Update, options: Sequence[Any], *arrays: Array) -> None:
    """Call ``update(*options, spare, *blocks)`` for all blocks of arrays.

    Args:
        update: element-wise arithmetic, which changes some of the blocks in place. It may write to ``spare``, an array like the
            blocks. All its arithmetic is by functions of NumPy and operators.
        options: its first arguments.
        arrays: arrays of one shape.
    """
    runner = _RUNNER.get()
    if runner is None or not runner(update, options, arrays):
        for spare, block in with_spare(in_blocks(*arrays)):
            update(*options, spare, *block)
