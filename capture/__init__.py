"""Calls of functions recorded once and replayed without Python's weight (``tg.compile``)."""

from .compiled import Compiled as Compiled
from .compiled import compile as compile  # noqa: A004 - PyTorch's name
