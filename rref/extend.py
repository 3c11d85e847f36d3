"""Interface for composition roots: the parts with which an agent has references."""

from .context import RRefContext as RRefContext
from .methods import serve_methods as serve_methods
from .places import PLACES_VARIABLE as PLACES_VARIABLE
from .places import places_wanted as places_wanted
from .promises import PromiseInterceptor as PromiseInterceptor
from .requests import ReferenceInterceptor as ReferenceInterceptor
from .requests import serve_references as serve_references
from .rref import owner_of as owner_of
from .rref import proxy_of_outcome as proxy_of_outcome
from .value_of import ValueOf as ValueOf
