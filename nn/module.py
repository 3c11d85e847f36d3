"""``Module``: parameters and modules with a ``forward``, and operations on all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..core.extend import Tensor, check_device
from . import state
from .hooked import Hooked
from .hooks import call_with_hooks, global_hooks
from .parameter import Parameter

M = TypeVar("M", bound="Module")
R = TypeVar("R", covariant=True)


class _Forward(Protocol[R]):
    """Module whose ``forward`` returns an ``R``, for type checkers."""

    @property
    def forward(self) -> Callable[..., R]: ...


def _no_forward(self: Module, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"{type(self).__name__} must define forward()")


def _call(self: Module, *args: Any, **kwargs: Any) -> Any:
    hooks = self._hooks
    if hooks is None and not global_hooks:
        return self.forward(*args, **kwargs)
    return call_with_hooks(self, hooks, args, kwargs)


class Module(Hooked):
    """Base of all models and layers (``torch.nn.Module``).

    Subclasses call ``super().__init__()``, assign their parameters and modules, and define ``forward``. Modules can be
    pickled and deep-copied; a tensor that is shared inside stays shared.
    """

    # An attribute and not a method, so that a subclass may give forward any signature.
    forward: Callable[..., Any] = _no_forward

    # Only the result is typed: hooks may change the arguments, so that a call may take others than forward.
    if TYPE_CHECKING:

        def __call__(self: _Forward[R], *args: Any, **kwargs: Any) -> R: ...

    else:
        __call__ = _call

    # -- all modules inside

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call ``fn`` with every module inside and then with this one; returns this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set ``training`` here and in all modules inside; returns this module.

        Args:
            mode: the value.

        Raises:
            TypeError: ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise TypeError(f"train() takes a bool, not {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Set ``training`` to false, as for evaluation; returns this module."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set ``requires_grad`` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters.

        Args:
            set_to_none: whether gradients become ``None`` instead of zeros.
        """
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = Tensor(np.zeros(parameter.shape, parameter.dtype))

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path like ``"encoder.layers.0"``; ``""`` is this one.

        Raises:
            AttributeError: there is none.
        """
        module: Module = self
        for part in target.split(".") if target else ():
            inner = module._modules.get(part)
            if inner is None:
                raise AttributeError(f"there is no module {target!r}: {type(module).__name__} has no module {part!r}")
            module = inner
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path like ``"encoder.layers.0.weight"``.

        Raises:
            AttributeError: there is none.
        """
        return self._member("_parameters", "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path like ``"encoder.norm.running_mean"``.

        Raises:
            AttributeError: there is none.
        """
        return self._member("_buffers", "buffer", target)

    def _member(self, table: str, what: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        member = owner.__dict__[table].get(name)
        if member is None:
            raise AttributeError(f"there is no {what} {target!r}: {type(owner).__name__} has no {what} {name!r}")
        return member

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace or add the module at a path.

        Args:
            target: the path, like ``"encoder.layers.0"``.
            module: the new module.
            strict: whether there must be a module at the path.

        Raises:
            AttributeError: a module on the path is missing.
            ValueError: the path is empty.
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("a module cannot replace itself; give the path of a module inside it")
        owner = self.get_submodule(path)
        if strict and name not in owner._modules:
            raise AttributeError(f"there is no module {target!r}: {type(owner).__name__} has no module {name!r}")
        owner.register_module(name, module)

    def share_memory(self: M) -> M:
        """Move all parameters and buffers into shared memory: see ``Tensor.share_memory_``."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    # -- conversion

    def to(self: M, *args: Any, dtype: npt.DTypeLike | None = None, **kwargs: Any) -> M:
        """Convert floating-point parameters and buffers in place: ``to(dtype)``, ``to(tensor)``, ``to("cpu")``.

        Args:
            args, dtype, kwargs: as for ``Tensor.to``.

        Returns:
            This module.

        Raises:
            TypeError: the dtype is not a floating-point or complex one.
            ValueError: a device other than the CPU.
        """

        def convert(tensor: Tensor) -> Tensor:
            converted = tensor.to(*args, dtype=dtype, **kwargs)
            if not (converted.is_floating_point() or converted.is_complex()):
                raise TypeError(f"a module holds floating-point or complex numbers, not {converted.dtype}")
            return converted

        return self._convert(convert)

    def float(self: M) -> M:
        """Convert to float32; see ``to``."""
        return self.to(dtype=np.float32)

    def double(self: M) -> M:
        """Convert to float64; see ``to``."""
        return self.to(dtype=np.float64)

    def half(self: M) -> M:
        """Convert to float16; see ``to``."""
        return self.to(dtype=np.float16)

    def bfloat16(self: M) -> M:
        """Convert to bfloat16; see ``to``.

        Raises:
            TypeError: the dtype is not available, because ``ml_dtypes`` is not installed.
        """
        return self._convert(lambda tensor: tensor.bfloat16())

    def type(self: M, dst_type: npt.DTypeLike) -> M:
        """Convert to ``dst_type``; see ``to``."""
        return self.to(dtype=dst_type)

    def cpu(self: M) -> M:
        """Return this module, which is on the CPU."""
        return self

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Give all parameters and buffers new memory with values of chance; returns this module.

        Args:
            device: the CPU.
            recurse: whether to do so in the modules inside, too.

        Raises:
            ValueError: a device other than the CPU.
        """
        check_device(device)
        for tensor in (*self.parameters(recurse), *self.buffers(recurse)):
            tensor.data = Tensor(np.empty(tensor.shape, tensor.dtype))
        return self

    def cuda(self: M, device: Any = None) -> M:
        """Raise: there is only the CPU.

        Raises:
            ValueError: always.
        """
        check_device("cuda")
        return self

    def _convert(self: M, convert: Callable[[Tensor], Tensor]) -> M:
        # The tensors stay the same objects, so optimizers and remote references go on referring to them.
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.is_floating_point():
                value, gradient = tensor.detach(), tensor.grad
                if (converted := convert(value)) is not value:
                    tensor.data = converted
                if gradient is not None:
                    tensor.grad = convert(gradient.detach())
        return self

    # -- state

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return the parameters, persistent buffers and extra state by path.

        Args:
            destination: dictionary to add them to.
            prefix: beginning of every path.
            keep_vars: whether to return the tensors themselves instead of detached ones over the same memory.
        """
        entries = {} if destination is None else destination
        state.collect(self, entries, prefix, keep_vars)
        return entries

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Copy the values of a state dict into the parameters and buffers; all of them, or none if something is wrong.

        Args:
            state_dict: tensors or arrays by path, as ``state_dict()`` gives them.
            strict: whether the keys must be exactly those of this module.
            assign: use the memory of the given tensors, and their dtypes, instead of copying.

        Returns:
            The missing and the unexpected keys (none if ``strict``).

        Raises:
            StateDictError: keys are missing or unexpected, or a shape differs; the message lists all of it.
        """
        return state.load(self, state_dict, strict, assign)

    # -- repr

    def extra_repr(self) -> str:
        """Return the text in the parentheses of this module's ``repr``."""
        return ""

    def __repr__(self) -> str:
        lines = [line for line in self.extra_repr().split("\n") if line]
        children = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{type(self).__name__}({''.join(lines)})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines + children) + "\n)"


def unusual(module: Module, usual: Mapping[str, object]) -> list[str]:
    """Return the settings of a module that differ from ``usual``, as its ``repr`` shows them."""
    return [f"{name}={getattr(module, name)}" for name, value in usual.items() if getattr(module, name) != value]
