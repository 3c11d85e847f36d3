"""PyTorch's names, and whether they are here by the same path."""

from __future__ import annotations

import importlib
from types import ModuleType

HERE = "telegrad.compat.torch"
THEIRS = "torch"
NEIGHBOURS = ("torchvision", "torchaudio", "torchtext", "torchrl", "pytorch_lightning", "lightning")


def is_theirs(name: str) -> bool:
    """Return whether a full name is one of PyTorch's."""
    return name.partition(".")[0] == THEIRS


def is_of_neighbours(name: str) -> bool:
    """Return whether a full name is of a library that is built on PyTorch."""
    return name.partition(".")[0] in NEIGHBOURS


def ours(name: str) -> str:
    """Return the path here of a name of PyTorch's."""
    return HERE + name.removeprefix(THEIRS)


def is_there(name: str) -> bool:
    """Return whether a name of PyTorch's, ``torch.a.b``, can be used here by its path.

    Only names in modules are looked up, not those of classes and objects.
    """
    found: object = importlib.import_module(HERE)
    for part in name.split(".")[1:]:
        if not isinstance(found, ModuleType):
            return True
        try:
            found = getattr(found, part)
        except AttributeError:
            return _is_module(name)
    return True


def _is_module(name: str) -> bool:
    try:
        importlib.import_module(ours(name))
    except ImportError:
        return False
    return True
