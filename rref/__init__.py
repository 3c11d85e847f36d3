"""Remote references: ``RRef``, ``remote``, ``RemoteModule``."""

from typing import TYPE_CHECKING

from .rref import RRef, remote

if TYPE_CHECKING:
    from .remote_module import RemoteModule
    from .remote_parameters import parameter_rrefs
else:
    # They import ``nn``, which workers without a model never need.
    _LATER = {"RemoteModule": ".remote_module", "parameter_rrefs": ".remote_parameters"}

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
        return value


__all__ = ["RRef", "RemoteModule", "parameter_rrefs", "remote"]
