"""For the composition root: the interceptor that lets events travel."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .numbers import PROFILE_EXTRA as PROFILE_EXTRA

if TYPE_CHECKING:
    from .interceptor import ProfilerInterceptor as ProfilerInterceptor
else:
    __getattr__ = late_imports(__name__, {"ProfilerInterceptor": "..interceptor"})
