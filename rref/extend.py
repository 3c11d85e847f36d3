"""Interface for composition roots: the parts with which an agent has references."""

from .context import RRefContext
from .methods import serve_methods
from .places import PLACES_VARIABLE, places_wanted
from .requests import ReferenceInterceptor, serve_references
from .rref import owner_of

__all__ = [
    "PLACES_VARIABLE",
    "owner_of",
    "places_wanted",
    "RRefContext",
    "ReferenceInterceptor",
    "serve_methods",
    "serve_references",
]
