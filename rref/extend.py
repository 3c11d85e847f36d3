"""Interface for composition roots: the parts with which an agent has references."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .context import PLACES_VARIABLE as PLACES_VARIABLE
from .context import RRefContext as RRefContext
from .context import places_wanted as places_wanted
from .making import proxy_of_outcome as proxy_of_outcome
from .methods import serve_methods as serve_methods
from .promises import PromiseInterceptor as PromiseInterceptor
from .requests import ReferenceInterceptor as ReferenceInterceptor
from .requests import serve_references as serve_references
from .rref import call_of_proxy as call_of_proxy
from .rref import is_released as is_released
from .rref import owner_of as owner_of
from .value_of import ValueOf as ValueOf

if TYPE_CHECKING:
    from .observing import observe_references as observe_references
    from .remote_module import forward_of as forward_of
else:
    __getattr__ = late_imports(__name__, {"observe_references": "..observing", "forward_of": "..remote_module"})
