"""Branches of a script that never run where there is no GPU: ``"cuda" if torch.cuda.is_available() else "cpu"``."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
from libcst.helpers import get_full_name_for_node

FALSE_HERE = {
    "torch.cuda.is_available",
    "torch.cuda.device_count",
    "torch.accelerator.is_available",
    "torch.accelerator.device_count",
    "torch.backends.mps.is_available",
}
"""Functions whose results are false here."""


class Branches:
    """Knows which nodes never run, as far as the tests around them show it.

    Args:
        names: returns the full names that a node may stand for.
    """

    def __init__(self, names: Callable[[cst.CSTNode], list[str]]) -> None:
        self._names = names
        self._false: dict[str, bool] = {}  # names of the script: whether every value that they got is false here
        self._dead: set[cst.CSTNode] = set()

    def is_dead(self, node: cst.CSTNode) -> bool:
        """Return whether a node is a branch that never runs."""
        return node in self._dead

    def assigned(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        """Remember whether a name stands for what is false here."""
        if name := get_full_name_for_node(target):
            self._false[name] = self._false.get(name, True) and self._is_false(value)

    def enter(self, test: cst.BaseExpression, body: cst.CSTNode, orelse: cst.CSTNode | None) -> None:
        """Note the branch of a test that never runs.

        Args:
            test: the condition.
            body: runs if it holds.
            orelse: runs otherwise.
        """
        if self._is_false(test):
            self._dead.add(body)
        elif orelse is not None and self._is_true(test):
            self._dead.add(orelse)

    def _is_false(self, test: cst.BaseExpression) -> bool:
        if isinstance(test, cst.Call):
            return any(name in FALSE_HERE for name in self._names(test.func))
        if isinstance(test, cst.BooleanOperation):
            sides = self._is_false(test.left), self._is_false(test.right)
            return any(sides) if isinstance(test.operator, cst.And) else all(sides)
        if isinstance(test, cst.Comparison):
            return self._is_false(test.left) and len(test.comparisons) == 1 and _is_above_0(test.comparisons[0])
        return self._false.get(get_full_name_for_node(test) or "", False)

    def _is_true(self, test: cst.BaseExpression) -> bool:
        return (
            isinstance(test, cst.UnaryOperation)
            and isinstance(test.operator, cst.Not)
            and self._is_false(test.expression)
        )


def _is_above_0(part: cst.ComparisonTarget) -> bool:
    """Return whether ``> 1`` and so on is false of 0."""
    if isinstance(part.operator, cst.GreaterThanEqual):
        return isinstance(part.comparator, cst.Integer) and part.comparator.evaluated_value > 0
    return isinstance(part.operator, cst.GreaterThan)
