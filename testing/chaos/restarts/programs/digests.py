"""Digest of a network: equal for equal bits."""

from __future__ import annotations

import hashlib
from typing import Any

from .....nn import Module


def digest(model: Module) -> str:
    """Return a text that tells networks apart whose parameters differ in any bit."""
    return digest_of(model.state_dict())


def digest_of(state: Any) -> str:
    """The same of a ``state_dict``."""
    bits = hashlib.sha256()
    for name, value in state.items():
        bits.update(name.encode() + value.numpy().tobytes())
    return bits.hexdigest()[:16]
