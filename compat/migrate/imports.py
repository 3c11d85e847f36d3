"""Change of imports: our path in place of PyTorch's."""

from __future__ import annotations

import libcst as cst
from libcst.helpers import get_full_name_for_node

from .names import HERE, THEIRS, is_theirs, ours


class Imports(cst.CSTTransformer):
    """Puts our path in place of PyTorch's in every import."""

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:  # noqa: N802
        """Change one name of ``import a.b as c, d``; names of ``from`` imports have no path."""
        name = get_full_name_for_node(updated_node.name) or ""
        if not is_theirs(name):
            return updated_node
        if updated_node.asname is not None:
            return updated_node.with_changes(name=_expression(ours(name)))
        # `import torch.nn` binds `torch`; the modules below it are imported when they are used.
        bound = cst.AsName(cst.Name(THEIRS))
        return updated_node.with_changes(name=_expression(HERE), asname=bound)

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:  # noqa: N802
        """Change the path of ``from a.b import c``, and keep the names."""
        if original_node.relative or original_node.module is None:
            return updated_node
        name = get_full_name_for_node(original_node.module) or ""
        return original_node.with_changes(module=_expression(ours(name))) if is_theirs(name) else updated_node


def _expression(path: str) -> cst.BaseExpression:
    return cst.parse_expression(path)
