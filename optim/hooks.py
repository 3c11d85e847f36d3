"""Hooks of an optimizer: functions of users around steps, and around saving and loading its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..core.extend import HookTable, RemovableHandle

Hook = Callable[..., Any]


class OptimizerHooks:
    """The hooks of one optimizer, in the order of their registration. Copies and pickles of the optimizer have none."""

    def __init__(self) -> None:
        self._steps = 0  # schedulers ask whether there was one since they were made
        self._before_step = HookTable()
        self._after_step = HookTable()
        self._before_saving = HookTable()
        self._after_saving = HookTable()
        self._before_loading = HookTable()
        self._after_loading = HookTable()

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        ``args`` are the optimizer and the argument of its step. If the hook returns a pair ``(args, kwargs)``, the step gets
        these instead.

        Returns:
            A handle that removes the hook; so do the other functions here.
        """
        return self._before_step.add(hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._after_step.add(hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict()`` reads the state."""
        return self._before_saving.add(hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` with the result of ``state_dict()``; a returned one replaces it."""
        return self._after_saving.add(hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before the state dict is loaded; a returned one is loaded instead."""
        return self._before_loading.add(hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state dict was loaded."""
        return self._after_loading.add(hook, prepend)

    @contextmanager
    def step_hooks(self, given: Any) -> Iterator[Any]:
        """Run the hooks around a step with the argument ``given``; yields the argument that they give it instead.

        Raises:
            RuntimeError: a hook returned something other than a pair of arguments.
        """
        args: tuple[Any, ...] = (self, given)
        kwargs: dict[str, Any] = {}
        for hook in self._before_step.calls():
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                args, kwargs = _arguments(replaced)
        yield args[1] if len(args) > 1 else None
        self._steps += 1
        for hook in self._after_step.calls():
            hook(self, args, kwargs)

    def state_dict_hooks(self, save: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return ``save()``, with the hooks around it."""
        for hook in self._before_saving.calls():
            hook(self)
        state = save()
        for hook in self._after_saving.calls():
            replaced = hook(self, state)
            state = state if replaced is None else replaced
        return state

    def load_hooks(self, state: Mapping[str, Any], load: Callable[[Mapping[str, Any]], None]) -> None:
        """Call ``load(state)``, with the hooks around it."""
        state = dict(state)
        for hook in self._before_loading.calls():
            replaced = hook(self, state)
            state = state if replaced is None else replaced
        load(state)
        for hook in self._after_loading.calls():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        # Hooks belong to this process and this object: many functions cannot be pickled, and they may know their optimizer.
        return {name: value for name, value in vars(self).items() if not isinstance(value, HookTable)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        OptimizerHooks.__init__(self)
        vars(self).update(state)


def _arguments(replaced: Any) -> tuple[Any, Any]:
    if isinstance(replaced, tuple) and len(replaced) == 2 and isinstance(replaced[0], tuple):
        return replaced
    raise RuntimeError(
        "a hook before a step must return None, or a tuple of arguments and a dict of named ones, in a pair; "
        f"it returned {replaced!r}"
    )
