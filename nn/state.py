"""State dicts: a module's tensors by path, and putting them back with a report of all that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import no_grad
from ..core.extend import Tensor
from .errors import StateDictError

if TYPE_CHECKING:
    from .module import Module


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict(strict=False)`` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if self.missing_keys or self.unexpected_keys:
            return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
        return "<All keys matched successfully>"


def members(module: Module, prefix: str = "") -> dict[str, Tensor]:
    """The parameters and persistent buffers by path. What is shared stands under each of its paths."""
    found: dict[str, Tensor] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        at = f"{prefix}{path}." if path else prefix
        persistent = (item for item in owner._buffers.items() if item[0] not in owner._non_persistent_buffers_set)
        for name, tensor in (*owner._parameters.items(), *persistent):
            if tensor is not None:
                found[at + name] = tensor
    return found


def load(module: Module, given: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Check everything, then copy (``Module.load_state_dict``)."""
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict() takes a mapping from paths to tensors, not {type(given).__name__}")
    own = members(module)
    keys = IncompatibleKeys([name for name in own if name not in given], [name for name in given if name not in own])
    values = {name: _to_tensor(given[name]) for name in own if name in given}
    problems = _key_problems(keys) if strict else []
    problems += [problem for name, value in values.items() if (problem := _misfit(name, own[name], value, given[name]))]
    if problems:
        raise StateDictError(
            f"the state dict does not fit {type(module).__name__}:" + "".join(f"\n  {p}" for p in problems)
        )
    with no_grad():
        for name, value in values.items():
            assert value is not None
            if assign:
                own[name].data = value
            else:
                own[name].copy_(value)
    return keys


def _to_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value.detach()
    return Tensor(value) if isinstance(value, (np.ndarray, np.generic)) else None


def _key_problems(keys: IncompatibleKeys) -> list[str]:
    problems = []
    if keys.missing_keys:
        problems.append(f"missing keys: {', '.join(map(repr, keys.missing_keys))}")
    if keys.unexpected_keys:
        problems.append(f"unexpected keys: {', '.join(map(repr, keys.unexpected_keys))}")
    return problems


def _misfit(name: str, own: Tensor, value: Tensor | None, given: Any) -> str | None:
    if value is None:
        return f"{name!r} must be a tensor, and the state dict has {type(given).__name__}"
    if value.shape != own.shape:
        return f"{name!r} has shape {own.shape} in the module and {value.shape} in the state dict"
    return None
