"""Libraries that a forked process cannot use, because its parent had started their threads or a GPU."""

from __future__ import annotations

import os
import sys

from .array_library import MissingDeviceError

_lost: frozenset[str] = frozenset()  # libraries that had started in the process from which this one was forked


def started_libraries() -> frozenset[str]:
    """Return the names of the libraries that have started threads or a GPU in this process."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    bridge = sys.modules.get("jax._src.xla_bridge")
    checks = {
        "CUDA with PyTorch": getattr(cuda, "is_initialized", None),
        "JAX": getattr(bridge, "backends_are_initialized", None),
    }
    return frozenset(name for name, check in checks.items() if check is not None and check())


def check_forked(name: str) -> None:
    """Check that this process was not forked from one in which a library had started.

    Args:
        name: one of ``started_libraries``.

    Raises:
        MissingDeviceError: it was. The library would wait for ever, or crash.
    """
    if name in _lost:
        raise MissingDeviceError(
            f"process {os.getpid()} there was forked from one that had used {name}, and cannot use it; start it with the spawn "
            "method, or fork it before the other one uses it"
        )


def _forked() -> None:
    global _lost
    _lost |= started_libraries()


os.register_at_fork(after_in_child=_forked)
