"""Change of a script that keeps PyTorch: only its remote calls, and the gradients through them, become ours."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import ParentNodeProvider, QualifiedNameProvider, QualifiedNameSource

from .names import HERE, ours

MOVED = (
    "torch.distributed.rpc",
    "torch.distributed.autograd",
    "torch.distributed.optim.DistributedOptimizer",
    "torch.distributed.optim.optimizer",
    "torch.distributed.nn.RemoteModule",
    "torch.distributed.nn.api.remote_module",
    "torch.futures",  # calls return futures
)
"""PyTorch's names that become ours, with all that is below them."""


def is_moved(name: str) -> bool:
    """Return whether a full name is one that becomes ours."""
    return any(name == each or name.startswith(f"{each}.") for each in MOVED)


class KeepingImports(cst.CSTTransformer):
    """Puts our path in place of PyTorch's, in imports and full names, for what is moved."""

    METADATA_DEPENDENCIES = (ParentNodeProvider, QualifiedNameProvider)

    def __init__(self) -> None:
        super().__init__()
        self._needs_import = False

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:  # noqa: N802
        """Change ``import a.b as c``. Without a name, PyTorch's ``import a.b`` stays, and the full names change."""
        name = get_full_name_for_node(original_node.name) or ""
        is_from = isinstance(self.get_metadata(ParentNodeProvider, original_node), cst.ImportFrom)
        if is_from or original_node.asname is None or not is_moved(name):
            return updated_node
        return updated_node.with_changes(name=cst.parse_expression(ours(name)))

    def leave_ImportFrom(  # noqa: N802
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.FlattenSentinel[cst.BaseSmallStatement]:
        """Change the path of ``from a.b import c``; where only some of the names are moved, make two imports of it."""
        if original_node.relative or original_node.module is None:
            return original_node
        module = get_full_name_for_node(original_node.module) or ""
        ours_here = cst.parse_expression(ours(module))
        if isinstance(original_node.names, cst.ImportStar):
            return original_node.with_changes(module=ours_here) if is_moved(module) else original_node
        moved = [alias for alias in original_node.names if is_moved(f"{module}.{get_full_name_for_node(alias.name)}")]
        if len(moved) == len(original_node.names):
            return original_node.with_changes(module=ours_here)
        if not moved:
            return original_node
        kept = [alias for alias in original_node.names if alias not in moved]
        parts = [_with_names(original_node, kept), _with_names(original_node, moved).with_changes(module=ours_here)]
        return cst.FlattenSentinel(parts)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:  # noqa: N802
        """Change a full name of what is moved, such as ``torch.distributed.rpc`` or ``dist.rpc``."""
        if isinstance(self.get_metadata(ParentNodeProvider, original_node), (cst.ImportAlias, cst.ImportFrom)):
            return updated_node
        for found in self.get_metadata(QualifiedNameProvider, original_node, set()):
            if found.source is QualifiedNameSource.IMPORT and found.name in MOVED:
                self._needs_import = True
                return cst.parse_expression(ours(found.name))
        return updated_node

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:  # noqa: N802
        """Import our modules before PyTorch's, if full names of them are in the script now."""
        if not self._needs_import:
            return updated_node
        body = list(updated_node.body)
        place = next((index for index, line in enumerate(body) if _imports(line)), 0)
        leading = body[place].leading_lines if isinstance(body[place], cst.SimpleStatementLine) else ()
        line = cst.ensure_type(cst.parse_statement(f"import {HERE}"), cst.SimpleStatementLine)
        body[place : place + 1] = [line.with_changes(leading_lines=leading), body[place].with_changes(leading_lines=())]
        return updated_node.with_changes(body=body)


def _with_names(node: cst.ImportFrom, names: Sequence[cst.ImportAlias]) -> cst.ImportFrom:
    last = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return node.with_changes(names=[*names[:-1], last])


def _imports(line: cst.CSTNode) -> bool:
    """Return whether a statement imports something, and not from ``__future__``."""
    if not isinstance(line, cst.SimpleStatementLine):
        return False
    for each in line.body:
        if isinstance(each, cst.ImportFrom):
            return each.module is None or get_full_name_for_node(each.module) != "__future__"
        if isinstance(each, cst.Import):
            return True
    return False
