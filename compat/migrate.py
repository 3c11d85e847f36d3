"""Change of a PyTorch script's imports to ``telegrad.compat.torch``, and a list of what that does not bring over."""

from __future__ import annotations

import importlib
from difflib import unified_diff
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, QualifiedNameProvider

HERE = "telegrad.compat.torch"
THEIRS = "torch"
NEIGHBOURS = ("torchvision", "torchaudio", "torchtext", "torchrl", "pytorch_lightning", "lightning")


class Finding(NamedTuple):
    """Line of a script that a change of imports does not bring over, and why."""

    line: int
    reason: str


class Migration(NamedTuple):
    """Script with changed imports, and what needs a person."""

    source: str
    findings: list[Finding]


def migrate(source: str) -> Migration:
    """Change the imports of a script.

    Args:
        source: the script's text.

    Raises:
        ValueError: it is not Python that this version can read.
    """
    try:
        tree = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise ValueError(f"line {error.raw_line}: {error.message}") from None
    wrapper = MetadataWrapper(tree)
    search = Search()
    wrapper.visit(search)
    return Migration(tree.visit(Imports()).code, sorted(set(search.findings)))


class Imports(cst.CSTTransformer):
    """Puts our path in place of PyTorch's in every import."""

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:  # noqa: N802
        """Change one name of ``import a.b as c, d``; names of ``from`` imports have no path."""
        name = get_full_name_for_node(updated_node.name) or ""
        if not _is_theirs(name):
            return updated_node
        if updated_node.asname is not None:
            return updated_node.with_changes(name=_expression(_ours(name)))
        # `import torch.nn` binds `torch`; the modules below it are imported when they are used.
        bound = cst.AsName(cst.Name(THEIRS))
        return updated_node.with_changes(name=_expression(HERE), asname=bound)

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:  # noqa: N802
        """Change the path of ``from a.b import c``, and keep the names."""
        if not _is_from_theirs(original_node):
            return updated_node
        assert original_node.module is not None
        path = _ours(get_full_name_for_node(original_node.module) or "")
        return original_node.with_changes(module=_expression(path))


class Search(cst.CSTVisitor):
    """Collects what a change of imports does not bring over."""

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider, QualifiedNameProvider)

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[Finding] = []

    def visit_Import(self, node: cst.Import) -> None:  # noqa: N802
        """Look at ``import a.b``."""
        for alias in node.names:
            self._look_up(node, get_full_name_for_node(alias.name) or "")

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:  # noqa: N802
        """Look at ``from a import b``."""
        module = get_full_name_for_node(node.module) if node.module and not node.relative else None
        if module is None:
            return
        if isinstance(node.names, cst.ImportStar):
            if _is_theirs(module):
                self._note(node, f"`from {module} import *` takes names that cannot be checked: name them")
            return
        for alias in node.names:
            self._look_up(node, f"{module}.{get_full_name_for_node(alias.name)}")

    def visit_Attribute(self, node: cst.Attribute) -> None:  # noqa: N802
        """Look at ``torch.a.b``, the longest of them."""
        if isinstance(self.get_metadata(ParentNodeProvider, node), cst.Attribute):
            return
        for name in self.get_metadata(QualifiedNameProvider, node, set()):
            self._look_up(node, name.name)

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        """Look for ``x.cuda()``."""
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "cuda":
            self._note(node, "there is no GPU: leave .cuda() out")

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802
        """Look for names of GPUs."""
        text = node.evaluated_value
        if isinstance(text, str) and text.partition(":")[0] == "cuda":
            self._note(node, f'there is no GPU: use "cpu" in place of "{text}"')

    def _look_up(self, node: cst.CSTNode, name: str) -> None:
        if name.partition(".")[0] in NEIGHBOURS:
            self._note(node, f"{name} is built on PyTorch, and does not work with telegrad")
        elif _is_theirs(name) and not is_there(name):
            self._note(node, f"{name} is not there")

    def _note(self, node: cst.CSTNode, reason: str) -> None:
        self.findings.append(Finding(self.get_metadata(PositionProvider, node).start.line, reason))


def is_there(name: str) -> bool:
    """Return whether a name of PyTorch's, ``torch.a.b``, can be used here by its path.

    Only names in modules are looked up, not those of classes and objects.
    """
    found: object = importlib.import_module(HERE)
    for part in name.split(".")[1:]:
        if not isinstance(found, ModuleType):
            return True
        try:
            found = getattr(found, part)
        except AttributeError:
            return _is_module(name)
    return True


def _is_module(name: str) -> bool:
    try:
        importlib.import_module(_ours(name))
    except ImportError:
        return False
    return True


def _is_theirs(name: str) -> bool:
    return name.partition(".")[0] == THEIRS


def _is_from_theirs(node: cst.ImportFrom) -> bool:
    return not node.relative and node.module is not None and _is_theirs(get_full_name_for_node(node.module) or "")


def _ours(name: str) -> str:
    return HERE + name.removeprefix(THEIRS)


def _expression(path: str) -> cst.BaseExpression:
    return cst.parse_expression(path)


def migrate_file(path: Path, diff: bool = False) -> list[str]:
    """Change the imports of a script in its file.

    Args:
        path: the script.
        diff: leave the file as it is, and return a diff too.

    Returns:
        Lines to print: with ``diff``, the change; then each finding, as compilers write them: ``train.py:12: …``.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: it is not Python that this version can read.
    """
    source = path.read_text()
    try:
        changed, findings = migrate(source)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    lines = [f"{path}:{line}: {reason}" for line, reason in findings]
    if diff:
        before, after = source.splitlines(), changed.splitlines()
        return [*unified_diff(before, after, str(path), str(path), lineterm=""), *lines]
    if changed != source:
        path.write_text(changed)
    return lines
