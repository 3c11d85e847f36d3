"""Modules that contain modules: ``Sequential``, ``ModuleList``, ``ModuleDict``."""
# ruff: noqa: A001, A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import index as to_index
from typing import Any, TypeVar

from .module import Module

C = TypeVar("C", bound="_Numbered")


class _Numbered(Module):
    """List of modules, registered under the names "0", "1", ...."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self._renumber(list(modules))

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self.register_module(str(number), module)

    def _items(self) -> list[Module]:
        return list(self._modules.values())  # type: ignore[arg-type]

    def _name(self, index: int) -> str:
        number = to_index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range: {type(self).__name__} holds {len(self)} modules")
        return list(self._modules)[number]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self.register_module(self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        kept = self._items()
        del kept[index]
        self._renumber(kept)

    def _part(self, index: slice) -> Any:
        return type(self)(self._items()[index])

    def append(self: C, module: Module) -> C:
        """Add a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def insert(self: C, index: int, module: Module) -> C:
        """Put a module before the one at ``index``."""
        items = self._items()
        items.insert(index, module)
        self._renumber(items)
        return self

    def pop(self, index: int = -1) -> Module:
        """Remove the module at ``index`` and return it."""
        module: Module = self[index]
        del self[index]
        return module

    def extend(self: C, modules: Iterable[Module]) -> C:
        """Add modules at the end."""
        for module in list(modules):
            self.append(module)
        return self


class Sequential(_Numbered):
    """Modules that are called one after the other, each with the result of the one before.

    Args:
        args: the modules, which are numbered; or a mapping of names to modules.
    """

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.register_module(name, module)
        else:
            self._renumber(list(args))  # type: ignore[arg-type]

    def _part(self, index: slice) -> Any:
        return type(self)(dict(list(self._modules.items())[index]))  # type: ignore[arg-type]

    def forward(self, input: Any) -> Any:
        """Return the result of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(_Numbered):
    """List of modules.

    Args:
        modules: the first members.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__(() if modules is None else modules)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """Dictionary of modules.

    Args:
        modules: a mapping of names to modules, or such pairs.
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace modules."""
        for name, module in dict(modules).items():
            self[name] = module

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()  # type: ignore[return-value]

    def items(self) -> Iterable[tuple[str, Module]]:
        """Return the names and modules."""
        return self._modules.items()  # type: ignore[return-value]

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules
