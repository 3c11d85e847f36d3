"""``RemoteModule``: a module on another worker, its owner, that is called from here (``torch.distributed.nn.RemoteModule``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, NoReturn

from ..base.arguments import check_type
from ..core.extend import check_device
from ..core.futures import Future
from ..nn import Module, Parameter
from ..nn.extend import is_module
from ..rpc.extend import UNSET_RPC_TIMEOUT, call_function
from .making import remote
from .rref import RRef

# Methods about parameters, buffers and modules inside, which are at the owner.
LOCAL_METHODS = (
    "register_buffer", "register_parameter", "register_module", "add_module", "apply", "cuda", "ipu", "xpu", "cpu", "type",
    "float", "double", "half", "bfloat16", "to", "register_backward_hook", "register_forward_pre_hook", "register_forward_hook",
    "load_state_dict", "parameters", "named_parameters", "buffers", "named_buffers", "children",
    "named_children", "modules", "requires_grad_", "zero_grad", "share_memory", "extra_repr",
)  # fmt: skip
DEVICE = "cpu"


class RemoteModule(Module):
    """Module on a worker, its owner, that is made there and called from here (``torch.distributed.nn.RemoteModule``).

    ``forward`` runs the module's ``forward`` at its owner. In a distributed autograd context, the gradients reach the
    parameters there, and ``remote_parameters`` returns references to these, for a ``DistributedOptimizer``. A
    ``RemoteModule`` can be sent in arguments and results. It can be a part of a local module, but its parameters are not among
    the local module's ``parameters()``.

    Args:
        remote_device: ``"worker"``, ``"worker/cpu"``, ``"rank:0"`` or ``"rank:0/cpu"``: the worker that makes and owns it.
        module_cls: class of the module, or a function that returns one. If it raises, each use raises that error.
        args: positional arguments of ``module_cls``.
        kwargs: keyword arguments of ``module_cls``.

    Attributes:
        on: name or rank of the worker.
        device: always ``"cpu"``.
        module_rref: reference to the module.
        training: mode that was set last with this object. Setting it sets the mode of the module.

    Raises:
        ValueError: ``remote_device`` names no worker, or another device than the CPU.
        TypeError: ``module_cls`` is an instance of a module.
        UnknownWorkerError: there is no such worker.

    Example:
        >>> import telegrad as tg
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     linear = tg.RemoteModule("server/cpu", tg.nn.Linear, args=(3, 2))
        ...     print(linear(tg.ones(4, 3)).shape, len(linear.remote_parameters()))
        (4, 2) 2
    """

    is_scriptable = False
    is_device_map_set = False

    def __init__(
        self,
        remote_device: str,
        module_cls: Callable[..., Module],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if is_module(module_cls):
            name = type(module_cls).__name__
            raise TypeError(
                f"module_cls must be a class or a function; you gave a {name}, an instance. Write {name}, args=(...)"
            )
        check_type("args", args, (tuple, list, NoneType), "a tuple; for one argument write args=(x,)")
        worker, device = parse_remote_device(remote_device)
        self._attach(worker, device, remote(worker, _create, (module_cls, tuple(args or ()), kwargs or {})))

    @classmethod
    def init_from_module_rref(cls, remote_device: str, module_rref: RRef[Any]) -> RemoteModule:
        """Return a ``RemoteModule`` for a module that exists already.

        Args:
            remote_device: the module's owner, as for the constructor.
            module_rref: reference to the module.
        """
        return _of(*parse_remote_device(remote_device), module_rref)

    def _attach(self, worker: str | int, device: str, module_rref: RRef[Any]) -> None:
        super().__init__()
        self.on = worker
        self.device = device
        self.module_rref = module_rref

    # -- calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module at its owner, and return the result."""
        return self.forward_async(*args, **kwargs).wait()

    def forward_async(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the module at its owner; return a future of the result."""
        return self._call(_forward, self.module_rref, args, kwargs)

    def _call(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        agent = self.module_rref._context.agent
        return call_function(agent, self.module_rref.owner(), function, args, None, UNSET_RPC_TIMEOUT)

    def remote_parameters(self, recurse: bool = True) -> list[RRef[Parameter]]:
        """Return references to the module's parameters, in its order; with ``recurse`` also to those of the modules inside.

        ``parameter_rrefs`` also finds the parameters of ``RemoteModule``s inside it.
        """
        references: list[RRef[Parameter]] = self._call(_parameters, self.module_rref, recurse).wait()
        return references

    def get_module_rref(self) -> RRef[Any]:
        """Return the reference to the module."""
        return self.module_rref

    # -- mode

    @property
    def training(self) -> bool:
        """Return the mode that was set last with this object. Setting it sets the mode of the module."""
        return self.__dict__.get("_training", True)

    @training.setter
    def training(self, mode: bool) -> None:
        if "module_rref" in self.__dict__:
            self._call(_set_training, self.module_rref, mode).wait()
        self.__dict__["_training"] = mode

    def train(self, mode: bool = True) -> RemoteModule:
        """Set the module's mode at its owner; return this object.

        Args:
            mode: True for training, False for evaluation.

        Raises:
            TypeError: ``mode`` is not a bool.
        """
        if not isinstance(mode, bool):
            raise TypeError(f"train() takes a bool, not {type(mode).__name__}")
        self.training = mode
        return self

    # -- as a part of a local module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this object, for the module of which it is a part, which passes ``memo``. Refused without ``memo``.

        Args:
            memo: modules that are left out; this one is added.
            prefix: name of this module.
            remove_duplicate: whether a module that is in several places comes once.
        """
        if memo is None:
            refuse(self, "named_modules")
        return super().named_modules(memo, prefix, remove_duplicate)

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Add nothing to the state of the module of which it is a part, which passes ``destination``. Else it is refused.

        Args:
            destination: dictionary that is returned.
            prefix: not used.
            keep_vars: not used.
        """
        return refuse(self, "state_dict") if destination is None else destination

    def __repr__(self) -> str:
        return f"RemoteModule({self.module_rref})"

    # -- travelling

    def __reduce__(self) -> Any:
        # Only a message can pickle it: the reference in it refuses all other pickles.
        for name in self.__dict__.keys() - _own_attributes():
            warnings.warn(
                f"the attribute {name!r} was added to a RemoteModule and does not travel with it; send it beside",
                stacklevel=2,
            )
        return _of, (self.on, self.device, self.module_rref)


def parse_remote_device(remote_device: str) -> tuple[str | int, str]:
    """Return the worker (name or rank) and the device in a text such as ``"worker/cpu"``.

    Raises:
        ValueError: the text has another form, or names another device than the CPU.
    """
    worker, slash, device = remote_device.partition("/") if isinstance(remote_device, str) else ("", "", "")
    rank = worker.removeprefix("rank:")
    if not worker or (slash and not device) or worker == DEVICE or (rank != worker and not rank.isdecimal()):
        raise ValueError(
            f"a remote device is written 'worker/cpu' or 'rank:0/cpu', and '/cpu' may be left out; you gave {remote_device!r}"
        )
    check_device(device or None)
    return (worker if rank == worker else int(rank)), device or DEVICE


def refuse(module: RemoteModule, name: str) -> NoReturn:
    """Refuse a method of ``Module`` that is about parameters, buffers or modules at the owner.

    Raises:
        ValueError: always.
    """
    raise ValueError(
        f"method {name!r} is not supported for RemoteModule: the module lives on worker {module.module_rref.owner_name()!r}. "
        f"Call it there, as in module.get_module_rref().rpc_sync().{name}()"
    )


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refused(self: RemoteModule, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(self, name)

    refused.__name__, refused.__qualname__ = name, f"RemoteModule.{name}"
    refused.__doc__ = f"Refuse ``{name}``: it is about parameters, buffers or modules at the owner."
    return refused


for _name in LOCAL_METHODS:
    setattr(RemoteModule, _name, _refusal(_name))


def _of(worker: str | int, device: str, module_rref: RRef[Any]) -> RemoteModule:
    module = RemoteModule.__new__(RemoteModule)
    module._attach(worker, device, module_rref)
    return module


def _own_attributes() -> set[str]:
    return Module().__dict__.keys() | {"on", "device", "module_rref", "_training"}


# -- at the owner


def _create(module_cls: Callable[..., Module], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Module:
    module = module_cls(*args, **kwargs)
    if not is_module(module):
        raise ValueError(f"module_cls must make an nn.Module; {module_cls!r} made an object of {type(module).__name__}")
    return module


def _forward(module: RRef[Module], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return module.local_value()(*args, **kwargs)


def forward_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return what a call from a ``RemoteModule`` runs at the owner, and its arguments; other calls as they are.

    Args:
        function, args, kwargs: the call.
    """
    return (args[0].local_value(), args[1], args[2]) if function is _forward else (function, args, kwargs)


def _parameters(module: RRef[Module], recurse: bool) -> list[RRef[Parameter]]:
    return [RRef(parameter) for parameter in module.local_value().parameters(recurse)]


def _set_training(module: RRef[Module], mode: bool) -> None:
    module.local_value().train(mode)
