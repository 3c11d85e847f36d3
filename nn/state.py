"""State dicts: a module's tensors by path, and loading them with a report of everything that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import no_grad
from ..core.extend import Tensor
from .errors import StateDictError
from .hooked import Hooked, run_state_hooks

if TYPE_CHECKING:
    from .module import Module

EXTRA = "_extra_state"  # the key of what get_extra_state() returns, behind the module's path


class IncompatibleKeys(NamedTuple):
    """Keys that ``load_state_dict(strict=False)`` ignored."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if self.missing_keys or self.unexpected_keys:
            return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
        return "<All keys matched successfully>"


def members(module: Module) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers by path; a shared one under each of its paths."""
    found: dict[str, Tensor] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        found.update(own_members(owner, f"{path}." if path else ""))
    return found


def own_members(module: Module, prefix: str) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of the module itself, with a prefix."""
    kept = module._non_persistent_buffers_set
    named = {**module._parameters, **{name: value for name, value in module._buffers.items() if name not in kept}}
    return {prefix + name: tensor for name, tensor in named.items() if tensor is not None}


def collect(module: Module, into: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the state of a module, and of all inside it, to a dictionary (``Module.state_dict``).

    Args:
        module: the module.
        into: the dictionary.
        prefix: beginning of every path.
        keep_vars: whether to add the tensors themselves instead of detached ones.
    """
    run_state_hooks(module, "saving", prefix, keep_vars)
    for name, tensor in own_members(module, prefix).items():
        into[name] = tensor if keep_vars else tensor.detach()
    if has_extra_state(module):
        into[prefix + EXTRA] = module.get_extra_state()
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=into, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    run_state_hooks(module, "saved", into, prefix, {})


def has_extra_state(module: Module) -> bool:
    """Return whether the module's class defines extra state."""
    return type(module).get_extra_state is not Hooked.get_extra_state


def load(module: Module, given: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Check a state dict, then copy its values (``Module.load_state_dict``).

    Args:
        module: the module.
        given: the state dict.
        strict, assign: as for ``Module.load_state_dict``.

    Returns:
        The missing and the unexpected keys.

    Raises:
        StateDictError: something does not fit; nothing is copied then.
        TypeError: ``given`` is not a mapping.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict() takes a mapping from paths to tensors, not {type(given).__name__}")
    owners = [(f"{path}." if path else "", owner) for path, owner in module.named_modules(remove_duplicate=False)]
    keys = IncompatibleKeys([], [])
    problems: list[str] = []
    given = dict(given)
    for prefix, owner in owners:
        run_state_hooks(owner, "loading", given, prefix, {}, strict, *keys, problems)
    own = members(module)
    extra = {prefix + EXTRA: owner for prefix, owner in owners if has_extra_state(owner)}
    keys.missing_keys.extend(name for name in (*own, *extra) if name not in given)
    keys.unexpected_keys.extend(name for name in given if name not in own and name not in extra)
    values = {name: _to_tensor(given[name]) for name in own if name in given}
    problems += _key_problems(keys) if strict else []
    problems += [problem for name, value in values.items() if (problem := _misfit(name, own[name], value, given[name]))]
    _report(module, problems)
    _copy(own, values, assign)
    for name, owner in extra.items():
        if name in given:
            owner.set_extra_state(given[name])
    for _, owner in owners:
        run_state_hooks(owner, "loaded", keys)
    return keys


def _report(module: Module, problems: list[str]) -> None:
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise StateDictError(f"the state dict does not fit {type(module).__name__}:{lines}")


@no_grad()
def _copy(own: dict[str, Tensor], values: dict[str, Tensor | None], assign: bool) -> None:
    for name, value in values.items():
        assert value is not None
        if assign:
            own[name].data = value
        else:
            own[name].copy_(value)


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
