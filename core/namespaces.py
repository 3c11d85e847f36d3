"""The functions of ``telegrad`` and its namespaces, once every module of operations is imported.

The modules are found, not listed: one that is added to ``ops/`` is there.
"""

import pkgutil
from importlib import import_module

from ..base.late_imports import collector_paused
from . import ops
from .ops.table.registry import functions_of as functions_of

with collector_paused():
    for _module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}."):
        import_module(_module.name)
