"""Change of a PyTorch script's imports to ``telegrad.compat.torch``, and a list of what that does not bring over."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from libcst.metadata import MetadataWrapper

from .imports import Imports
from .keeping import KeepingImports
from .names import is_there as is_there
from .reading import decode, parse, with_deep_stack
from .search import Finding, Search


class Migration(NamedTuple):
    """Script with changed imports, and what needs a person."""

    source: str
    findings: list[Finding]


def migrate(source: str, keep_torch: bool = False) -> Migration:
    """Change the imports of a script; every other character stays, line ends too.

    Args:
        source: the script's text.
        keep_torch: change remote calls and the gradients through them only; tensors and models stay PyTorch's.

    Raises:
        ValueError: it is not Python that this version can read, or its expressions are too deep.
    """
    return with_deep_stack(lambda: _migrate(source, keep_torch))


def _migrate(source: str, keep_torch: bool) -> Migration:
    wrapper = MetadataWrapper(parse(source), unsafe_skip_copy=True)
    search = Search(source, keep_torch)
    wrapper.visit(search)
    changed = wrapper.visit(KeepingImports()) if keep_torch else wrapper.module.visit(Imports())
    return Migration(_with_end_of(source, changed.code), search.sorted())


def _with_end_of(source: str, changed: str) -> str:
    """Return ``changed`` with the line ends that ``source`` ends with: the parser drops a carriage return there."""
    return changed.rstrip("\r\n") + source[len(source.rstrip("\r\n")) :]


def migrate_file(path: Path, diff: bool = False, keep_torch: bool = False) -> list[str]:
    """Change the imports of a script in its file, and nothing else: not its encoding, line ends or byte order mark.

    Args:
        path: the script.
        diff: leave the file as it is, and return a diff too.
        keep_torch: see ``migrate``.

    Returns:
        Lines to print: with ``diff``, the change; then each finding, as compilers write them: ``train.py:12: …``.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: it is not Python that this version can read, or its expressions are too deep.
    """
    try:
        source, encoding = decode(path.read_bytes())
        changed, findings = migrate(source, keep_torch)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    lines = [f"{path}:{line}: {reason}" for line, reason in findings]
    if diff:
        before, after = source.splitlines(), changed.splitlines()
        return [*unified_diff(before, after, str(path), str(path), lineterm=""), *lines]
    if changed != source:
        path.write_bytes(changed.encode(encoding))
    return lines
