"""All checks that ship with the package: ``CHECKS`` of the modules in this folder.

A module may also have ``EXEMPT``: the operations that it does not check, each with the reason.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from ...testing.ops import OpCheck
from .in_place import in_place_forms

CHECKS: list[OpCheck] = []
EXEMPT: dict[str, str] = {}

for _path in sorted(Path(__file__).parent.glob("*.py")):
    if not _path.stem.startswith("__") and _path.stem != "catalogue":
        _family = importlib.import_module(f"..{_path.stem}", __name__)
        CHECKS += getattr(_family, "CHECKS", [])
        EXEMPT.update(getattr(_family, "EXEMPT", {}))

CHECKS += in_place_forms(CHECKS)
