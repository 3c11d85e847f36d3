"""``Hooked``: the part of ``Module`` that registers hooks on calls and state dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.extend import HookTable, RemovableHandle
from .hooks import ModuleHooks
from .registry import Registry

if TYPE_CHECKING:
    from .module import Module

Hook = Callable[..., Any]


class StateHooks:
    """Hooks of one module's state dicts."""

    def __init__(self) -> None:
        self.saving = HookTable()  # hook(module, prefix, keep_vars)
        self.saved = HookTable()  # hook(module, state_dict, prefix, local_metadata)
        self.loading = HookTable()  # hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)
        self.loaded = HookTable()  # hook(module, incompatible_keys)


class Hooked(Registry):
    """Base of ``Module`` with its hooks.

    ``None`` stands for no hooks, so that calls and copies of most modules have nothing to do with them.
    """

    _hooks: ModuleHooks | None = None
    _state_hooks: StateHooks | None = None

    def _call_hooks(self) -> ModuleHooks:
        if self._hooks is None:
            self._hooks = ModuleHooks()
        return self._hooks

    def _dict_hooks(self) -> StateHooks:
        if self._state_hooks is None:
            self._state_hooks = StateHooks()
        return self._state_hooks

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; a returned value or tuple replaces ``args``.

        Args:
            hook: the function.
            prepend: run it before the hooks that are there.
            with_kwargs: call ``hook(module, args, kwargs)`` instead, which may return ``(args, kwargs)``.
        """
        return self._call_hooks().before.add((hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)`` after ``forward``; what it returns, if not ``None``, replaces ``result``.

        Args:
            hook: the function.
            prepend: run it before the hooks that are there.
            with_kwargs: call ``hook(module, args, kwargs, result)`` instead.
            always_call: call it also when ``forward`` raised, with the result ``None``.
        """
        return self._call_hooks().after.add((hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are there; a returned tuple replaces them."""
        return self._call_hooks().backward_before.add(hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there.

        Both are tuples, with ``None`` for what is no tensor or needs no gradient; keyword arguments are left out. A returned
        tuple replaces ``grad_input``.
        """
        return self._call_hooks().backward.add(hook, prepend)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` looks at this module."""
        return self._dict_hooks().saving.add(hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when this module's entries are in ``state_dict``.

        It may change the dictionary; ``local_metadata`` is an empty one.
        """
        return self._dict_hooks().saved.add(hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``.

        That is before ``load_state_dict`` looks at this module's entries of a copy of the dictionary, which the hook may
        change. What it adds to the last list is an error.
        """
        return self._dict_hooks().loading.add(hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` when ``load_state_dict`` has copied all; it may change both lists."""
        return self._dict_hooks().loaded.add(hook)

    def get_extra_state(self) -> Any:
        """Return state that a subclass adds to ``state_dict`` beside its tensors, in a form that ``set_extra_state`` takes.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no extra state; define get_extra_state() for some")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that ``get_extra_state`` returned.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no extra state; define set_extra_state() to take some")


def run_state_hooks(module: Module, kind: str, *args: Any) -> None:
    """Run the state hooks of one module that are in the table ``kind``."""
    if module._state_hooks is not None:
        for hook in getattr(module._state_hooks, kind).calls():
            hook(module, *args)
