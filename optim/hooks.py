"""Hooks of an optimizer: functions of users around steps, and around saving and loading its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def step_hooks(self, given: Any) -> StepHooks:
        """Return a context that runs the hooks around a step with the argument ``given``; it gives the step's own argument.

        Raises:
            RuntimeError: a hook returned something other than a pair of arguments.
        """
        return StepHooks(self, given)

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


class StepHooks:
    """Context of one step: it runs the hooks of the optimizer, and counts the step if it raises nothing.

    Args:
        optimizer: whose step it is.
        given: the argument of the step.
    """

    __slots__ = ("_args", "_kwargs", "_optimizer")

    def __init__(self, optimizer: OptimizerHooks, given: Any) -> None:
        self._optimizer = optimizer
        self._args: tuple[Any, ...] = (optimizer, given)
        self._kwargs: dict[str, Any] = {}

    def __enter__(self) -> Any:
        for hook in self._optimizer._before_step.calls() if self._optimizer._before_step else ():
            replaced = hook(self._optimizer, self._args, self._kwargs)
            if replaced is not None:
                self._args, self._kwargs = _arguments(replaced)
        return self._args[1] if len(self._args) > 1 else None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        self._optimizer._steps += 1
        for hook in self._optimizer._after_step.calls() if self._optimizer._after_step else ():
            hook(self._optimizer, self._args, self._kwargs)


def _arguments(replaced: Any) -> tuple[Any, Any]:
    if isinstance(replaced, tuple) and len(replaced) == 2 and isinstance(replaced[0], tuple):
        return replaced
    raise RuntimeError(
        "a hook before a step must return None, or a tuple of arguments and a dict of named ones, in a pair; "
        f"it returned {replaced!r}"
    )
