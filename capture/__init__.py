"""Calls of functions recorded once and replayed without Python's weight (``tg.compile``)."""

from .compiled import Compiled as Compiled
from .compiled import compile as compile  # noqa: A004 - PyTorch's name
from .loaded import LoadedPlan as LoadedPlan
from .loading import load_plan as load_plan
from .plan import Plan as Plan
