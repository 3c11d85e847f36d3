"""Protection of code from signals: which code may be left by an exception that has nothing to do with it, and which may not.

Python runs a signal handler in the middle of whatever the main thread does, and a finalizer in the middle of whatever any
thread does. Code of the packages that hold state (``HOLDING``) is *protected*: it owns locks, and changes that belong together.
User code is *open*, and so is what ``opens`` marks: waits, and the freeing of users' values. Everything else (Python's
library, NumPy, gRPC, operations on tensors) is as protected as the code that called it. The mark is kept beside the
function's code, so it costs a call nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, TypeVar
from weakref import finalize

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

PACKAGE = __name__.partition(".")[0]
# Packages with locks, queues and tables that other threads need, to bring an answer or to end a wait at its deadline.
HOLDING = ("agents", "autograd_dist", "collective", "core.futures", "core.shared_memory", "pipelining", "rpc", "rref")
# Modules of those that wait for other workers before there is an agent, and undo by ``finally`` what they have begun.
OPEN = ("rpc.rendezvous",)
COMPUTING = ("core", "data", "distributions", "func", "nn", "optim")  # called by those while they hold no lock
# Packages that this one uses, whose code runs in the middle of its own.
USED = {"cloudpickle", "cryptography", "google", "grpc", "ml_dtypes", "mpi4py", "numpy", "safetensors"}

_open: set[CodeType] = set()
_finalizing = finalize.__call__.__code__


def opens(function: F) -> F:
    """Mark a function that waits or runs user code, in one call of C: a signal may end it there, and its result may be lost.

    What it holds, other threads must not need. Code that calls it is ready for an exception, as for a time-out.
    """
    _open.add(function.__code__)
    return function


@opens
def free(values: list[Any]) -> None:
    """Clear a list of users' values. Their destructors are user code: they may call other workers, and wait."""
    values.clear()


@opens
def interruptible(call: Callable[..., R], *args: Any) -> R:
    """Return ``call(*args)``, which waits, and is left at Ctrl-C; its result may be lost."""
    return call(*args)


def is_protected(frame: FrameType | None) -> bool:
    """Return whether an exception of a signal handler that interrupts ``frame`` would do harm, or be lost.

    The innermost code that is protected or open decides; a finalizer is always protected: nothing passes on what it raises.
    """
    decided: bool | None = None
    while frame is not None:
        if is_finalizer(frame):
            return True
        if decided is None:
            decided = protects(frame)
        frame = frame.f_back
    return bool(decided)


def protects(frame: FrameType) -> bool | None:
    """Return whether a frame's own code is protected; ``None`` if it is as protected as its caller."""
    return False if frame.f_code in _open else protects_module(frame.f_globals.get("__name__") or "")


def computes(frame: FrameType) -> bool:
    """Return whether a frame's code computes: it is called while no lock is held, so another call may begin there and wait."""
    top, _, rest = (frame.f_globals.get("__name__") or "").partition(".")
    return top == PACKAGE and _is_of(rest, COMPUTING) and not _is_of(rest, HOLDING)


def is_finalizer(frame: FrameType) -> bool:
    """Return whether a frame is that of a finalizer, which Python calls when it frees an object."""
    code = frame.f_code
    return code.co_name == "__del__" or code is _finalizing


def in_finalizer(frame: FrameType | None) -> bool:
    """Return whether one of the frames from ``frame`` outwards is that of a finalizer."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code is _finalizing:  # ``is_finalizer``, without a call
            return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=4096)
def protects_module(module: str) -> bool | None:
    """Return the same for a module, by its name: code that Python has generated has no file, but it has a module."""
    top, _, rest = module.partition(".")
    if top == PACKAGE:
        return False if rest.startswith(OPEN) else _is_of(rest, HOLDING) or None
    return None if top in sys.stdlib_module_names or top in USED or top.startswith("namedtuple_") else False


def _is_of(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
