"""``Registry``: the parameters, buffers and modules of a module, registered by assignment and enumerated by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.extend import Tensor
from .parameter import Buffer, Parameter

if TYPE_CHECKING:
    from .module import Module

T = TypeVar("T")
KINDS = ("_parameters", "_buffers", "_modules")


class Registry:
    """Base of ``Module``: an assigned parameter or module is registered, and a buffer stays a buffer."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        self.__dict__.update(training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _modules={})

    # -- registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter.

        Args:
            name: its name.
            param: the parameter; ``None`` if the module can have one of that name but has not.

        Raises:
            KeyError: the name is empty, contains a dot, or is an attribute already.
            TypeError: not a ``Parameter``.
            ValueError: the parameter is the result of a recorded operation.
        """
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"the parameter {name!r} must be an nn.Parameter, not {type(param).__name__}; wrap it in one"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"the parameter {name!r} is the result of a recorded operation; detach() it first")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the module's state but is not learned.

        Args:
            name: its name.
            tensor: the tensor; ``None`` if the module can have one of that name but has not.
            persistent: whether ``state_dict`` contains it.

        Raises:
            KeyError: the name is empty, contains a dot, or is an attribute already.
            TypeError: not a tensor.
        """
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"the buffer {name!r} must be a tensor, not {type(tensor).__name__}")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a module inside this one.

        Raises:
            KeyError: the name is empty, holds a dot, or is an attribute already.
            TypeError: not a module.
        """
        self._check_name("module", name, self._modules)
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"the module {name!r} must be an nn.Module, not {type(module).__name__}{_hint(module)}")
        self._modules[name] = module

    add_module = register_module

    def _check_name(self, what: str, name: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a {what}'s name must be a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a {what}'s name must be without dots and not empty, and you gave {name!r}")
        if name not in table and hasattr(self, name):
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already; choose another name")

    def _parametrized(self, name: str) -> Any:
        # See utils/parametrize.py: the parameters that are computed, in a module dictionary of that name.
        found = self.__dict__.get("_modules", {}).get("parametrizations")
        return None if found is None else found._modules.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self._tables()
        if isinstance(value, Tensor) and (parametrized := self._parametrized(name)) is not None:
            parametrized.right_inverse(value)
            return
        kind = _table_for(value)
        if kind is not None:
            if not tables:
                raise AttributeError(f"call super().__init__() before you assign the attribute {name!r}")
            for table in (self.__dict__, *tables.values()):
                if table is not tables[kind]:
                    table.pop(name, None)
            self._non_persistent_buffers_set.discard(name)
            getattr(self, "register" + kind[:-1])(name, value, *((value.persistent,) if kind == "_buffers" else ()))
            return
        for kind, table in tables.items():
            if name in table:
                _check_value(kind, name, value)
                table[name] = value
                return
        _warn_of_compiled(self, name, value)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not an ordinary attribute.
        own = self.__dict__  # without _tables(): every layer's forward comes here for each of its parameters
        for kind in KINDS:
            if kind in own and name in own[kind]:
                return own[kind][name]
        parametrized = self._parametrized(name)
        if parametrized is not None:
            return parametrized.value()
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for table in self._tables().values():
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for table in self._tables().values() for name in table)})

    def _tables(self) -> dict[str, dict[str, Any]]:
        own = self.__dict__
        # Before __init__, and while it is unpickled, a module has none.
        return {kind: own[kind] for kind in KINDS if kind in own}

    # -- enumeration

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module, named ``prefix``, and all inside it, named by their path: ``"encoder.layers.0"``.

        Args:
            memo: modules that are left out; those found are added.
            prefix: name of this module, and beginning of all others.
            remove_duplicate: whether a module that is in several places comes once.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)  # type: ignore[arg-type]
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all inside it, each once, unless ``remove_duplicate`` is false."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the modules directly inside this one, each once, with their names."""
        return _once((name, module) for name, module in self._modules.items() if module is not None)

    def children(self) -> Iterator[Module]:
        """Yield the modules directly inside this one, each once."""
        return (module for _, module in self.named_children())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their paths: ``"encoder.layers.0.weight"``.

        Args:
            prefix: beginning of all paths.
            recurse: whether those of the modules inside come too.
            remove_duplicate: whether a shared parameter comes once, under its first path.
        """
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once; those of the modules inside too, unless ``recurse`` is false."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their paths.

        Args:
            prefix: beginning of all paths.
            recurse: whether those of the modules inside come too.
            remove_duplicate: whether a shared buffer comes once, under its first path.
        """
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once; those of the modules inside too, unless ``recurse`` is false."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _named_members(self, table: str, prefix: str, recurse: bool, unique: bool) -> Iterator[tuple[str, Any]]:
        owners = self.named_modules(None, prefix, unique) if recurse else iter(((prefix, self),))
        members = (
            (_join(path, name), member)
            for path, owner in owners
            for name, member in owner.__dict__[table].items()
            if member is not None
        )
        return _once(members) if unique else members


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _once(named: Iterator[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    seen = set()  # of the objects themselves: they hash by identity, and two `==` of tensors are never compared
    for name, member in named:
        if id(member) not in seen:
            seen.add(id(member))
            yield name, member


def _table_for(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return "_parameters"
    if isinstance(value, Buffer):
        return "_buffers"
    return "_modules" if isinstance(value, Registry) else None


def _check_value(kind: str, name: str, value: Any) -> None:
    if value is None or (kind == "_buffers" and isinstance(value, Tensor)):
        return
    wanted = {"_parameters": "an nn.Parameter", "_modules": "an nn.Module", "_buffers": "a tensor"}[kind]
    raise TypeError(
        f"{name!r} is registered as {wanted}, so it can be {wanted} or None, not {type(value).__name__}{_hint(value)}"
    )


def _compiled(value: Any) -> Registry | None:
    """Return the module that a result of ``compile`` calls, or ``None``."""
    inner = getattr(value, "__dict__", {}).get("__wrapped__")
    return inner if isinstance(inner, Registry) else None


def _hint(value: Any) -> str:
    return (
        "" if _compiled(value) is None else "; compile its forward instead: module.forward = tg.compile(module.forward)"
    )


def _warn_of_compiled(owner: Registry, name: str, value: Any) -> None:
    inner = _compiled(value)
    if inner is not None and all(each is not inner for _, each in owner.named_modules()):
        warnings.warn(
            f"{name!r} is a compiled module, whose parameters are not found here: assign the module itself, and then "
            f"{name}.forward = tg.compile({name}.forward)",
            stacklevel=3,
        )
