"""Hooks of modules: functions called before and after ``forward``, and around its backward pass.

Most modules have none, and their call checks only for that. Backward hooks see gradients at two boundaries around the
call's tensors: identities in the graph, one before ``forward`` and one after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import Function
from ..core.extend import HookTable, RemovableHandle, Tensor, is_grad_enabled

if TYPE_CHECKING:
    from .module import Module

Grads = tuple[Any, ...]


class ModuleHooks:
    """Hooks of one module, or of all modules."""

    def __init__(self) -> None:
        self.before = HookTable()  # (hook(module, args[, kwargs]) -> args[, kwargs] | None, with_kwargs)
        self.after = HookTable()  # (hook(module, args[, kwargs], result) -> result | None, with_kwargs, always_call)
        self.backward_before = HookTable()  # hook(module, grad_output) -> grad_output | None
        self.backward = HookTable()  # hook(module, grad_input, grad_output) -> grad_input | None


# Hooks of all modules; empty until the first is registered, so that most calls have nothing to do with them.
global_hooks: list[ModuleHooks] = []


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before ``forward`` of every module; a returned value or tuple replaces ``args``.

    Args:
        hook: the function.

    Returns:
        A handle whose ``remove()`` removes the hook.
    """
    return _global_hooks().before.add((hook, False))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, result)`` after ``forward`` of every module; a returned value replaces ``result``.

    Args:
        hook: the function.
        with_kwargs, always_call: as for ``Module.register_forward_hook``.

    Returns:
        A handle whose ``remove()`` removes the hook.
    """
    return _global_hooks().after.add((hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of every module; a returned tuple replaces ``grad_output``.

    Args:
        hook: the function.

    Returns:
        A handle whose ``remove()`` removes the hook.
    """
    return _global_hooks().backward_before.add(hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after the backward of every module; see ``Module``'s method.

    Args:
        hook: the function.

    Returns:
        A handle whose ``remove()`` removes the hook.
    """
    return _global_hooks().backward.add(hook)


def _global_hooks() -> ModuleHooks:
    if not global_hooks:
        global_hooks.append(ModuleHooks())
    return global_hooks[0]


def has_hooks(module: Module) -> bool:
    """Return whether a call of a module runs anything but its ``forward``."""
    return module._hooks is not None or bool(global_hooks)


def call_with_hooks(module: Module, own: ModuleHooks | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module with the hooks of all modules and then its own.

    Args:
        module: the module.
        own: its hooks, if it has some.
        args, kwargs: the arguments of ``forward``.
    """
    hooks = [*global_hooks, *(() if own is None else (own,))]
    called = False
    try:
        args, kwargs = _before(hooks, module, args, kwargs)
        watch = _Watch.of(module, hooks)
        if watch is None:
            result = module.forward(*args, **kwargs)
        else:
            result = watch.wrap_outputs(module.forward(*watch.wrap_inputs(args), **kwargs))
        called = True
        return _after(hooks, module, args, kwargs, result)
    except Exception:
        if not called:
            _after_failure(hooks, module, args, kwargs)
        raise


def _before(hooks: list[ModuleHooks], module: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
    for each in hooks:
        for hook, with_kwargs in each.before.calls():
            returned = hook(module, args, kwargs) if with_kwargs else hook(module, args)
            if returned is None:
                continue
            if not with_kwargs:
                args = returned if isinstance(returned, tuple) else (returned,)
            elif isinstance(returned, tuple) and len(returned) == 2:
                args, kwargs = returned
            else:
                raise TypeError(
                    "a forward pre-hook with_kwargs=True must return None or a tuple (args, kwargs), and yours returned "
                    f"{type(returned).__name__}"
                )
    return args, kwargs


def _after(hooks: list[ModuleHooks], module: Module, args: Any, kwargs: Any, result: Any) -> Any:
    for each in hooks:
        for hook, with_kwargs, _ in each.after.calls():
            returned = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            result = result if returned is None else returned
    return result


def _after_failure(hooks: list[ModuleHooks], module: Module, args: Any, kwargs: Any) -> None:
    for each in hooks:
        for hook, with_kwargs, always_call in each.after.calls():
            if always_call:
                hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)


class _Boundary(Function):
    """Identity whose backward passes the gradients to a function, which may replace them."""

    @staticmethod
    def forward(ctx: Any, on_gradients: Callable[[Grads], Grads], *tensors: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.on_gradients = on_gradients
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.on_gradients(grads))


class _Watch:
    """Call of a module whose backward has hooks."""

    def __init__(self, module: Module, hooks: list[ModuleHooks]) -> None:
        self.module = module
        self.hooks = hooks
        self.inputs = self.outputs = 0
        self.input_indices: list[int] = []
        self.output_indices: list[int] = []
        self.grad_output: Grads = ()

    @classmethod
    def of(cls, module: Module, hooks: list[ModuleHooks]) -> _Watch | None:
        """Return a watch if a hook needs one."""
        if is_grad_enabled() and any(each.backward or each.backward_before for each in hooks):
            return cls(module, hooks)
        return None

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, passed through a boundary."""
        values, self.input_indices = _through_boundary(list(args), self._on_input_gradients)
        self.inputs = len(values)
        return tuple(values)

    def wrap_outputs(self, result: Any) -> Any:
        """Return the result, passed through a boundary."""
        single = not isinstance(result, (tuple, list))
        values, self.output_indices = _through_boundary([result] if single else list(result), self._on_output_gradients)
        self.outputs = len(values)
        return values[0] if single else tuple(values) if isinstance(result, tuple) else values

    def _on_output_gradients(self, grads: Grads) -> Grads:
        grads = _for_all_values(grads, self.output_indices, self.outputs)
        for each in self.hooks:
            for hook in each.backward_before.calls():
                grads = _replaced(grads, hook(self.module, grads), "grad_output")
        self.grad_output = grads
        if not self.input_indices:  # no gradient will reach the inputs
            self._run_backward_hooks((None,) * self.inputs)
        return tuple(grads[index] for index in self.output_indices)

    def _on_input_gradients(self, grads: Grads) -> Grads:
        grads = self._run_backward_hooks(_for_all_values(grads, self.input_indices, self.inputs))
        return tuple(grads[index] for index in self.input_indices)

    def _run_backward_hooks(self, grad_input: Grads) -> Grads:
        for each in self.hooks:
            for hook in each.backward.calls():
                grad_input = _replaced(grad_input, hook(self.module, grad_input, self.grad_output), "grad_input")
        self.grad_output = ()
        return grad_input


def _through_boundary(values: list[Any], on_gradients: Callable[[Grads], Grads]) -> tuple[list[Any], list[int]]:
    indices = [index for index, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
    if indices:
        for index, tensor in zip(indices, _Boundary.apply(on_gradients, *(values[index] for index in indices))):
            values[index] = tensor
    return values, indices


def _for_all_values(grads: Grads, indices: list[int], count: int) -> Grads:
    found = dict(zip(indices, grads))
    return tuple(found.get(index) for index in range(count))


def _replaced(grads: Grads, returned: Any, name: str) -> Grads:
    if returned is None:
        return grads
    given = returned if isinstance(returned, tuple) else (returned,)
    if len(given) != len(grads):
        raise ValueError(f"a backward hook must return as many gradients as {name} has, {len(grads)}, not {len(given)}")
    return given
