"""For those who put an agent together: the parts that make it answer references."""

from .context import RRefContext
from .interceptor import ReferenceInterceptor
from .serving import serve_references

__all__ = ["RRefContext", "ReferenceInterceptor", "serve_references"]
