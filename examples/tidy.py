"""Check at the end of an example that its workers kept nothing: no call, no reference, no autograd context."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable

import telegrad as tg

WAIT_SECONDS = 10.0


def show_tidy(quiet: bool = False) -> None:
    """Print this worker's counts once they are all zero.

    References and contexts are deleted in the background, so this may take a moment.

    Raises:
        RuntimeError: they are not zero within ten seconds.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while any(counts().values()) and time.monotonic() < deadline:
        time.sleep(0.01)
        gc.collect()  # a compiled method and its object are a cycle
    found = counts()
    if any(found.values()):
        raise RuntimeError(f"{tg.rpc.get_worker_info().name} did not come to rest: {tg.rpc.debug_info()}")
    if not quiet:
        print("tidy:", ", ".join(f"{number} {name}" for name, number in found.items()), flush=True)


def show_all_tidy(others: Iterable[str], quiet: bool = False) -> None:
    """Let each of the ``others`` print its counts, then this worker, which has no calls left by then.

    Where a call has failed, its error may keep the frames that it passed through, and their references, in a cycle: so all
    collect those first.
    """
    others = [*others]
    for worker in others:
        tg.rpc.rpc_sync(worker, gc.collect)
    gc.collect()
    for worker in others:
        tg.rpc.rpc_sync(worker, show_tidy, args=(quiet,))
    show_tidy(quiet)


def counts() -> dict[str, int]:
    """Return the counts of this worker's calls, references (owned, used or in flight) and autograd contexts."""
    info = tg.rpc.debug_info()
    return {
        "pending calls": info["pending_calls"],
        "references": sum(info["references"].values()),
        "contexts": info["contexts"],
    }
