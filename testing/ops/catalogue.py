"""All checks that ship with the package, by family."""

from __future__ import annotations

from . import elementwise

FAMILIES = {"elementwise": elementwise.CHECKS}
CHECKS = [check for checks in FAMILIES.values() for check in checks]

# Operations that are other names or spellings of checked ones, or that have no values to compare: and why.
EXEMPT: dict[str, str] = {}
