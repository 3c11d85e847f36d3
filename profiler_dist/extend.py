"""For the composition root: the interceptor that lets events travel."""

from .interceptor import ProfilerInterceptor as ProfilerInterceptor
