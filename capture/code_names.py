"""Names in the code of functions: of attributes, of globals, and of modules that are imported when it runs."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType


def names_of(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in a code, and in the codes inside it."""
    for each in _codes(code):
        yield from each.co_names


@functools.lru_cache(1024)
def global_names(code: CodeType) -> frozenset[str]:
    """Return the names that are read as globals."""
    return frozenset(
        each.argval
        for part in _codes(code)
        for each in dis.get_instructions(part)
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )


@functools.lru_cache(1024)
def imported_modules(code: CodeType, package: str | None) -> frozenset[str]:
    """Return names of the modules that a code imports, and some names that may be of none.

    Args:
        code: the code.
        package: where it is, for relative imports.
    """
    imports = [
        each.argval for part in _codes(code) for each in dis.get_instructions(part) if each.opname == "IMPORT_NAME"
    ]
    parts = (package or "").split(".")
    parents = [".".join(parts[: count + 1]) for count in range(len(parts))]
    found = {name for name in imports if name}
    return frozenset([*found, *(f"{parent}.{name}".strip(".") for parent in parents for name in imports)])


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
