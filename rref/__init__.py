"""Remote references: ``RRef``, ``remote``, ``value``, ``RemoteModule``."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .making import remote, value
from .rref import RRef

if TYPE_CHECKING:
    from .remote_module import RemoteModule
    from .remote_parameters import parameter_rrefs
else:
    # These two import ``nn``, which workers without a model never need.
    __getattr__ = late_imports(__name__, {"RemoteModule": ".remote_module", "parameter_rrefs": ".remote_parameters"})


__all__ = ["RRef", "RemoteModule", "parameter_rrefs", "remote", "value"]
