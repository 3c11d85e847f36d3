"""Frames of the user's in tracebacks: those of Telegrad and of Python's import around them tell a program's author nothing."""

from __future__ import annotations

from types import TracebackType

PACKAGE = __name__.partition(".rpc.")[0]
SERVING_MODULES = tuple(f"{PACKAGE}.{name}." for name in ("rpc", "rref", "core.futures"))
"""Modules between the network and the called function, or between a value and the code that waits for it."""
FINDING = (*SERVING_MODULES, "importlib", "_frozen_importlib", "cloudpickle.")
"""Modules that find the function or class of a name."""


def users_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the called function on. None if no function was reached."""
    return _from(frames, SERVING_MODULES)


def users_error(error: Exception) -> Exception | None:
    """Return an exception of finding a name with the user's frames only, for ``raise ... from``; None if it has none.

    They are those of a module that is imported, or of a method for unpickling.
    """
    frames = _from(error.__traceback__, FINDING)
    return None if frames is None else error.with_traceback(frames)


def _from(frames: TracebackType | None, skipped: tuple[str, ...]) -> TracebackType | None:
    while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).startswith(skipped):
        frames = frames.tb_next
    return frames


def advice_to_install(error: Exception) -> str:
    """Return the beginning of an advice, if a whole library is missing at this worker; empty for other errors.

    Args:
        error: of an import.
    """
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return f"install {missing} there if it is a library, or " if missing and "." not in missing else ""
