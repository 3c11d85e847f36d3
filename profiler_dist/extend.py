"""For the composition root: the interceptor that lets events travel."""

from .interceptor import ProfilerInterceptor

__all__ = ["ProfilerInterceptor"]
