"""Python versions of workers. Code that travels by value is bytecode, which other minor versions run wrongly, or crash."""

from __future__ import annotations

import sys

ADVICE = (
    "define it at module level in a module that both workers can import, so that it travels by its name, or run the same "
    "Python version on all workers"
)


class OtherVersionError(Exception):
    """Error: code would travel by value to a worker of another Python version. Its text says which code and which workers."""


def own_version() -> str:
    """Return the version of this interpreter's bytecode: ``3.12``, with the interpreter's name if that is not CPython."""
    name = "" if sys.implementation.name == "cpython" else f"{sys.implementation.name} "
    return f"{name}{sys.version_info.major}.{sys.version_info.minor}"


def difference(sender: str, version: str, receiver: str, other: str) -> str:
    """Return a text that names two workers and their Python versions, if code cannot travel between them; else an empty one.

    Args:
        sender, receiver: names of the workers.
        version, other: their versions; empty if unknown.
    """
    if version == other or not version or not other:
        return ""
    return f"worker {sender!r} runs Python {version} and worker {receiver!r} Python {other}"
