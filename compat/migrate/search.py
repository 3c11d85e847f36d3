"""Search for what a change of imports does not bring over."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import ParentNodeProvider, PositionProvider, QualifiedNameProvider

from .branches import Branches
from .jobs import Jobs
from .keeping import is_moved
from .names import is_of_neighbours, is_theirs, is_there

COMPARISONS = (cst.Comparison, cst.ComparisonTarget)


class Finding(NamedTuple):
    """Line of a script that a change of imports does not bring over, and why."""

    line: int
    reason: str


class Search(cst.CSTVisitor):
    """Collects what a change of imports does not bring over.

    Args:
        source: the script's text.
        keep_torch: look only at what becomes ours where PyTorch is kept.
    """

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider, QualifiedNameProvider)

    def __init__(self, source: str, keep_torch: bool = False) -> None:
        super().__init__()
        self._keep_torch = keep_torch
        self._findings: set[Finding] = set()
        self._branches = Branches(self._names)
        self._jobs = Jobs(keep_torch)

    def sorted(self) -> list[Finding]:
        """Return the findings, by line."""
        return sorted(self._findings)

    # -- branches that never run without a GPU

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Look at a node, except in branches that never run without a GPU."""
        return not self._branches.is_dead(node) and super().on_visit(node)

    def visit_Assign(self, node: cst.Assign) -> None:  # noqa: N802
        """Remember names of what is false without a GPU, and the address of the job."""
        for target in node.targets:
            self._branches.assigned(target.target, node.value)
            self._note(node, self._jobs.assigned(target.target, node.value))

    def visit_If(self, node: cst.If) -> None:  # noqa: N802
        """Leave out the branch that never runs."""
        self._branches.enter(node.test, node.body, node.orelse)

    def visit_IfExp(self, node: cst.IfExp) -> None:  # noqa: N802
        """Leave out the value that is never taken."""
        self._branches.enter(node.test, node.body, node.orelse)

    # -- names

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
            if is_moved(module) if self._keep_torch else is_theirs(module):
                self._note(node, f"`from {module} import *` takes names that cannot be checked: name them")
            return
        for alias in node.names:
            self._look_up(node, f"{module}.{get_full_name_for_node(alias.name)}")

    def visit_Attribute(self, node: cst.Attribute) -> None:  # noqa: N802
        """Look at ``torch.a.b``, the longest of them."""
        if not isinstance(self.get_metadata(ParentNodeProvider, node), cst.Attribute):
            for name in self._names(node):
                self._look_up(node, name)

    # -- calls and texts

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        """Look for ``x.cuda()``, and for calls that make workers meet."""
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "cuda" and not self._keep_torch:
            self._note(node, "there is no GPU: leave .cuda() out")
        self._note(node, self._jobs.called(node))

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802
        """Look for names of GPUs, of NCCL, and for addresses."""
        text = node.evaluated_value
        if self._keep_torch or isinstance(self.get_metadata(ParentNodeProvider, node), COMPARISONS):
            return  # device.type == "cuda" is false
        if isinstance(text, str) and text.partition(":")[0] in ("cuda", "mps"):
            self._note(node, f'there is no GPU: use "cpu" in place of "{text}"')
        if text == "nccl":
            self._note(node, 'there is no NCCL: use "gloo" in place of "nccl"')

    def _names(self, node: cst.CSTNode) -> list[str]:
        return [name.name for name in self.get_metadata(QualifiedNameProvider, node, set())]

    def _look_up(self, node: cst.CSTNode, name: str) -> None:
        if self._keep_torch and not is_moved(name):
            return
        if is_of_neighbours(name):
            self._note(node, f"{name} is built on PyTorch, and does not work with telegrad")
        elif is_theirs(name) and not is_there(name):
            self._note(node, f"{name} is not there")

    def _note(self, node: cst.CSTNode, reason: str | None) -> None:
        if reason is not None:
            self._findings.add(Finding(self.get_metadata(PositionProvider, node).start.line, reason))
