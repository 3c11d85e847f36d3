"""Local variables of statements: which they read before they write them, which they write, which they surely write."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

# Contexts that let exceptions pass, so that what follows them finds all that they have assigned.
_CONTEXTS = frozenset(["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"])
_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def reads(tree: Any) -> Counter[str]:
    """Return how often names are read in a tree; those of comprehensions count as well."""
    found: Counter[str] = Counter()
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            found[each.id] += 1
        elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] += 1
    return found


def writes(tree: Any) -> set[str]:
    """Return the names that are written in a tree, perhaps; not those of comprehensions."""
    if isinstance(tree, _COMPREHENSIONS):
        return set()
    own = {tree.id} if isinstance(tree, ast.Name) and not isinstance(tree.ctx, ast.Load) else set()
    return own.union(*map(writes, ast.iter_child_nodes(tree)))


def needs(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements may read before they write them."""
    found: set[str] = set()
    done: set[str] = set()
    for each in statements:
        found |= _needs(each) - done
        done |= surely_written([each])
    return found


def _needs(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.For, ast.While, ast.If)):
        first: Any = statement.iter if isinstance(statement, ast.For) else statement.test
        target = writes(statement.target) if isinstance(statement, ast.For) else set()
        return _loads(first) | (needs(statement.body) - target) | needs(statement.orelse)
    if isinstance(statement, ast.With):
        return _loads(*statement.items) | (needs(statement.body) - _assigned(statement))
    return _loads(statement)


def _loads(*trees: Any) -> set[str]:
    """Return the names that are read in trees; not those that comprehensions define."""
    found: set[str] = set()
    for tree in trees:
        if isinstance(tree, _COMPREHENSIONS):
            own = {name for each in tree.generators for name in writes(each.target)}
            found |= _loads(tree.generators[0].iter) | (_loads(*ast.iter_child_nodes(tree)) - own)
        elif isinstance(tree, ast.Name):
            found |= {tree.id} if isinstance(tree.ctx, ast.Load) else set()
        else:
            found |= _loads(*ast.iter_child_nodes(tree))
            if isinstance(tree, ast.AugAssign) and isinstance(tree.target, ast.Name):
                found.add(tree.target.id)
    return found


def surely_written(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that have a value whenever statements have come to their end."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, ast.Assign) or (isinstance(each, ast.AnnAssign) and each.value is not None):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            found |= set[str]().union(*map(writes, targets))
        elif isinstance(each, ast.With) and (lets_pass(each) or is_of_step(each)):
            found |= _assigned(each) | surely_written(each.body)
        elif isinstance(each, ast.If):
            ways = [
                surely_written(way) for way in (each.body, each.orelse) if not way or not isinstance(way[-1], _JUMPS)
            ]
            found |= set.intersection(*ways) if ways else set()
    return found


def _assigned(statement: ast.With) -> set[str]:
    return set[str]().union(*[writes(each.optional_vars) for each in statement.items if each.optional_vars is not None])


def lets_pass(statement: ast.With) -> bool:
    """Return whether no exception ends at a ``with`` statement."""
    return all(_called(each)[-1:] and _called(each)[-1] in _CONTEXTS for each in statement.items)


def is_of_step(statement: ast.With) -> bool:
    """Return whether a statement is ``with autograd_dist.context()``, by whatever name the module has."""
    names = _called(statement.items[0])
    return len(statement.items) == 1 and len(names) > 1 and names[-1] == "context" and "autograd" in names[-2]


def _called(item: ast.withitem) -> list[str]:
    """Return the names of what is called for a context: of a function, and before it of its module; empty for other code."""
    names: list[str] = []
    tree: Any = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    while isinstance(tree, ast.Attribute):
        names, tree = [tree.attr, *names], tree.value
    return [tree.id, *names] if isinstance(tree, ast.Name) else names
