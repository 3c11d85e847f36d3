"""For those who put an agent together: the parts that make it answer references."""

from .context import RRefContext
from .requests import ReferenceInterceptor, serve_references

__all__ = ["RRefContext", "ReferenceInterceptor", "serve_references"]
