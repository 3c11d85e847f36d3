"""``Tree``: plans of one function that branch on values that Python looked at.

A replay runs the first part of the plans, which ends with a look. The value leads to the next part, and at last to the end of
one plan. The parts before that have changed nothing but the states of generators, and which tensors are gradients. So where a
value leads nowhere, these are put back, and the call is made as if nothing had happened.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..core.extend import Tensor
from .errors import Unrecordable
from .frames import Frames
from .parts import Part
from .plan import Plan
from .source import Source
from .values import Storage

MISSED = object()  # result of a replay that was given up
_PATHS = 32  # plans of one tree, the least recently used are dropped
_times = itertools.count()


class Tree:
    """Plans that begin in the same way.

    Args:
        plans: the plans, the first ones first; the functions and objects that they read are the same.

    Attributes:
        plans: the plans.
        dropped: how many were dropped so far.

    Raises:
        Unrecordable: they do not begin in the same way.
    """

    pure = False  # errors are raised: a replay that has changed nothing is given up instead

    def __init__(self, plans: Sequence[Plan], dropped: int = 0) -> None:
        self.plans, self.dropped = plans, dropped
        plans[-1].used = next(_times)
        early = [plan for plan in plans if any(each.draws for part in plan.parts[:-1] for each in part.statements)]
        self._generators = list({id(each): each for plan in early for each in plan.generators}.values())
        self._root = _grown(plans, 0)

    def joined(self, plan: Plan) -> Tree:
        """Return a tree with one more plan; of too many, the one that was not used for the longest time is dropped.

        Raises:
            Unrecordable: it does not begin in the same way.
        """
        plans = [*self.plans, plan]
        if len(plans) > _PATHS:
            plans.remove(min(self.plans, key=lambda each: each.used))
        return Tree(plans, self.dropped + len(self.plans) + 1 - len(plans))

    def has(self, plan: Plan, tensors: Sequence[Tensor]) -> bool:
        """Return whether there is a plan for the same values that can be used in the same cases, as far as that is known."""
        seen = [each.seen for each in plan.looks]
        return any([look.seen for look in each.looks] == seen and each.finds(tensors) for each in self.plans)

    @property
    def replays(self) -> int:
        """The number of replays."""
        return sum(plan.replays for plan in self.plans)

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether a replay can begin: see ``Plan.fits``."""
        return self.plans[0].state.fits(tensors)

    def replay(self, tensors: Sequence[Tensor]) -> Any:
        """Return the result of the plan that the values lead to; ``MISSED`` if there is none, and nothing has changed."""
        states = [each.get_state() for each in self._generators]
        live: dict[int, Any] = {}
        replaced: list[tuple[Tensor, Any]] = []
        plan = None
        try:
            plan = self._walk(tensors, live, replaced)
            if plan is not None:
                plan.used = next(_times)
                return plan.replay(tensors, live)
        except Exception:
            if plan is not None and not plan.pure:
                raise
        for generator, state in zip(self._generators, states):
            generator.set_state(state)
        for leaf, gradient in replaced:
            leaf._grad = gradient
        return MISSED

    def _walk(self, tensors: Sequence[Tensor], live: dict[int, Any], replaced: list[tuple[Tensor, Any]]) -> Plan | None:
        branch: Any = self._root
        while type(branch) is _Branch:
            if not branch.code.fits(tensors):
                return None
            replaced += [(leaf, leaf._grad) for leaf, _ in branch.code.part.replaces]
            branch = branch.children.get(branch.code.run(tensors, live), ())
        former = {id(leaf): gradient for leaf, gradient in replaced}
        return next((plan for plan in branch if plan.finds(tensors, former)), None)


class _Branch:
    """A part in a tree.

    Args:
        code: runs the part.
        children: by what its look sees, the next parts, or the plans that end.
    """

    def __init__(self, code: Code, children: dict[Any, _Branch | Sequence[Plan]]) -> None:
        self.code, self.children = code, children


class Code:
    """A part as a function.

    Args:
        part: the part.
        given: numbers of the values that later parts may use.
        kept: memory that later parts may use.
        label: a name for readers.

    Attributes:
        part: the part.
        source: its final form.
    """

    def __init__(self, part: Part, given: frozenset[int], kept: frozenset[Storage], label: str) -> None:
        self.given, self.kept = given, kept
        seen = part.statements[-1].result
        results = seen, {number: part.made[number] for number in sorted(given)}
        self.source = source = Source(
            part.statements,
            len(part.statements),
            part.arrays,
            results,
            part.found,
            part.tensors,
            fast=part.fast,
            live=part.live,
            kept=kept,
        )
        self.part = part
        self._condition = eval(source.condition, dict(source.constants))  # a line of the program itself
        self._frames = Frames(source, label)

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the part can run: see ``Plan.fits``."""
        return self.part.can_replace() and self.part.uses.same() and bool(self._condition(*tensors))

    def run(self, tensors: Sequence[Tensor], live: dict[int, Any]) -> Any:
        """Run the part, and return what its look sees.

        Args:
            tensors: those of the call.
            live: what earlier parts have made; what this one makes is added.
        """
        frame = self._frames.take()
        seen, made = frame(*tensors, live)
        self._frames.free.append(frame)
        live.update(made)
        return seen


def each_of(plans: Sequence[Plan | Tree]) -> list[Plan]:
    """Return plans, and those of trees."""
    return [each for plan in plans for each in (plan.plans if isinstance(plan, Tree) else [plan])]


def joined(trees: Sequence[Tree], plan: Plan, tensors: Sequence[Tensor]) -> tuple[Tree | None, Tree]:
    """Return the tree in whose place there is a new one, if there is, and the tree that has a plan.

    Args:
        trees: those that fit.
        plan: the plan.
        tensors: those of the call.
    """
    for tree in trees:
        if tree.has(plan, tensors):  # another thread was faster
            return tree, tree
        try:
            return tree, tree.joined(plan)
        except Unrecordable:
            continue
    return None, Tree([plan])


def _grown(plans: Sequence[Plan], depth: int) -> _Branch | Sequence[Plan]:
    """Return the branch of plans that saw the same values before their part ``depth``."""
    if all(len(each.parts) == depth + 1 for each in plans):
        return plans
    part = plans[0].parts[depth]
    if any(len(each.parts) == depth + 1 or not each.parts[depth].same(part) for each in plans):
        raise Unrecordable("calls that see the same values do other things")
    groups: dict[Any, list[Plan]] = {}
    for each in plans:
        groups.setdefault(each.parts[depth].seen, []).append(each)
    return _Branch(_code(plans, depth), {seen: _grown(group, depth + 1) for seen, group in groups.items()})


def _code(plans: Sequence[Plan], depth: int) -> Code:
    part = plans[0].parts[depth]
    later = [each for plan in plans for each in plan.parts[depth + 1 :]]
    given = frozenset(value.number for each in later for value in each.live if value.number in part.made)
    kept = frozenset[Storage]().union(*(each.storages for each in later))
    code: Code | None = part.code
    if code is None or code.given != given or not code.kept >= kept:
        code = Code(part, given, kept, plans[0].label)
    for plan in plans:
        plan.parts[depth].code = code
    return code
