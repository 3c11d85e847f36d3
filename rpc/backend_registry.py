"""Backends that ``init_rpc`` can start, and the options of each (``torch.distributed.rpc.backend_registry``).

A backend is a pair of functions with a name. The gRPC agent is a backend. Others can be registered, and are then found as
``BackendType.NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from ..base.errors import ArgumentKindError, RpcError
from .options import DEFAULT_INIT_METHOD, DEFAULT_RPC_TIMEOUT, GrpcRpcBackendOptions, RpcBackendOptions


class BackendValue(NamedTuple):
    """Functions of a backend.

    Attributes:
        construct_rpc_backend_options_handler: ``(rpc_timeout, init_method, **kwargs)``, returns the backend's options.
        init_backend_handler: starts the agent; called with ``store`` (always ``None``), ``name``, ``rank``, ``world_size`` and
            ``rpc_backend_options``, by keyword.
    """

    construct_rpc_backend_options_handler: Callable[..., RpcBackendOptions]
    init_backend_handler: Callable[..., Any]


class _Backends(type):
    """Class whose attributes are its instances, as in an ``Enum``; instances can be added at any time."""

    __members__: Mapping[str, BackendType]

    def __iter__(cls) -> Iterator[BackendType]:
        return iter(cls.__members__.values())

    def __len__(cls) -> int:
        return len(cls.__members__)

    def __getitem__(cls, name: str) -> BackendType:
        return cls.__members__[name]

    def __getattr__(cls, name: str) -> BackendType:
        if name in cls.__members__:
            return cls.__members__[name]
        raise AttributeError(f"there is no backend {name}; those registered are {', '.join(cls.__members__)}")


_members: dict[str, BackendType] = {}


class BackendType(metaclass=_Backends):
    """Kind of agent that ``init_rpc`` can start, made by ``register_backend``.

    Attributes:
        name: the backend's name, usually in upper case.
        value: the backend's functions.
    """

    GRPC: ClassVar[BackendType]
    __members__: ClassVar[Mapping[str, BackendType]] = MappingProxyType(_members)

    def __init__(self, name: str, value: BackendValue) -> None:
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return f"BackendType.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _member, (self.name,)


def _member(name: str) -> BackendType:
    return _members[name]


def backend_registered(backend_name: str) -> bool:
    """Return whether there is a backend of that name."""
    return backend_name in _members


def register_backend(
    backend_name: str,
    construct_rpc_backend_options_handler: Callable[..., RpcBackendOptions],
    init_backend_handler: Callable[..., Any],
) -> BackendType:
    """Add a backend, and return it for ``init_rpc(backend=...)``.

    Args:
        backend_name: its name, an identifier.
        construct_rpc_backend_options_handler: see ``BackendValue``.
        init_backend_handler: see ``BackendValue``.

    Raises:
        RpcError: a backend of that name is registered already.
        TypeError: the name is no identifier, or a handler cannot be called.
    """
    if not isinstance(backend_name, str) or not backend_name.isidentifier():
        raise TypeError(f"backend_name must be a name such as 'MINE'; you gave {backend_name!r}")
    for handler in (construct_rpc_backend_options_handler, init_backend_handler):
        if not callable(handler):
            raise TypeError(f"the handlers of a backend are functions; you gave {handler!r}")
    if backend_registered(backend_name):
        raise RpcError(f"backend {backend_name!r} is registered already; choose another name")
    value = BackendValue(construct_rpc_backend_options_handler, init_backend_handler)
    made = _members[backend_name] = BackendType(backend_name, value)
    return made


def find_backend(backend: Any, options: RpcBackendOptions | None = None) -> BackendType:
    """Return a registered backend; for ``None``, the one whose options are of the type of ``options``.

    Raises:
        ArgumentKindError: there is no such backend.
    """
    if backend is None and options is not None:
        backend = next(
            (each for each in BackendType if isinstance(options, type(construct_rpc_backend_options(each)))), None
        )
    if backend is None:
        return BackendType.GRPC
    if not isinstance(backend, BackendType):
        raise ArgumentKindError(f"backend must be one of {list(BackendType)}; you gave {backend!r}")
    return backend


def construct_rpc_backend_options(
    backend: BackendType,
    rpc_timeout: float = DEFAULT_RPC_TIMEOUT,
    init_method: str = DEFAULT_INIT_METHOD,
    **kwargs: Any,
) -> RpcBackendOptions:
    """Return options of a backend.

    Args:
        backend: the backend.
        rpc_timeout: see ``RpcBackendOptions``.
        init_method: see ``RpcBackendOptions``.
        kwargs: the backend's other options.

    Raises:
        ArgumentKindError: there is no such backend.
    """
    return find_backend(backend).value.construct_rpc_backend_options_handler(rpc_timeout, init_method, **kwargs)


def init_backend(backend: BackendType, *args: Any, **kwargs: Any) -> Any:
    """Start an agent, as ``init_rpc`` does, and return what the backend's handler returns.

    Args:
        backend: the backend.
        args, kwargs: passed on to the backend's handler.

    Raises:
        ArgumentKindError: there is no such backend.
    """
    return find_backend(backend).value.init_backend_handler(*args, **kwargs)


def _grpc_options(rpc_timeout: float, init_method: str, **kwargs: Any) -> RpcBackendOptions:
    return GrpcRpcBackendOptions(rpc_timeout=rpc_timeout, init_method=init_method, **kwargs)


def _start_grpc(
    store: None = None,
    name: str | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> Any:
    # The composition root is in a higher layer: the package's root adds its function, which is imported now.
    return import_module(__package__).start_grpc(name, rank, world_size, rpc_backend_options)


BackendType.GRPC = register_backend("GRPC", _grpc_options, _start_grpc)
