"""Functions that users hang on an optimizer: around steps, and around saving and loading its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..core.extend import HookTable, RemovableHandle

Hook = Callable[..., Any]


class OptimizerHooks:
    """The hooks of one optimizer, in the order of their registration."""

    def __init__(self) -> None:
        self._before_step = HookTable()
        self._after_step = HookTable()
        self._before_saving = HookTable()
        self._after_saving = HookTable()
        self._before_loading = HookTable()
        self._after_loading = HookTable()

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        return self._before_step.add(hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._after_step.add(hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict()`` looks."""
        return _added(self._before_saving, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` with what ``state_dict()`` gives; a returned one replaces it."""
        return _added(self._after_saving, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before it is loaded; a returned one is loaded instead."""
        return _added(self._before_loading, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state dict was loaded."""
        return _added(self._after_loading, hook, prepend)

    @contextmanager
    def step_hooks(self, args: tuple[Any, ...]) -> Iterator[None]:
        """Around a step: its hooks."""
        for hook in self._before_step.calls():
            hook(self, args, {})
        yield
        for hook in self._after_step.calls():
            hook(self, args, {})

    def state_dict_hooks(self, save: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """``save()``, between its hooks."""
        for hook in self._before_saving.calls():
            hook(self)
        state = save()
        for hook in self._after_saving.calls():
            replaced = hook(self, state)
            state = state if replaced is None else replaced
        return state

    def load_hooks(self, state: Mapping[str, Any], load: Callable[[Mapping[str, Any]], None]) -> None:
        """``load(state)``, between its hooks."""
        state = dict(state)
        for hook in self._before_loading.calls():
            replaced = hook(self, state)
            state = state if replaced is None else replaced
        load(state)
        for hook in self._after_loading.calls():
            hook(self)


def _added(table: HookTable, hook: Hook, prepend: bool) -> RemovableHandle:
    handle = table.add(hook)
    if prepend:
        others = [key for key in table if key != handle.id]
        for key in others:
            table[key] = table.pop(key)
    return handle
