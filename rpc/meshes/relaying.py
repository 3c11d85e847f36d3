"""State machine of one mesh call at one worker: its own part, the subtrees below it, and the worker that asks for results.

It has no I/O and no clock: methods take events and return instructions. ``RELAY_TRANSITIONS`` is the life of the call;
``docs/design/rpc_meshes.md`` has the same table, and a test compares the two.

Results are a log that only grows. A parent asks for those from a position on: first from 0, again if it was given some of
them, or if its connection broke, and from 0 if it has adopted this worker. So a repeated request never runs a function again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from .tree import Member, Subtree, children


class RelayState(Enum):
    """State of a mesh call at a worker."""

    __hash__ = object.__hash__  # Enum's own takes much longer; both by identity

    WORKING = "working"  # results are missing, and a parent waits for them
    UNASKED = "unasked"  # results are missing, and no parent waits: it is lost, or was given some results
    COMPLETE = "complete"  # every result is here, and is kept: it may be asked for again
    ENDED = "ended"  # the caller has all results, or gave up


class RelayEvent(Enum):
    """Event that changes the state of a mesh call at a worker."""

    __hash__ = object.__hash__

    ASK = "ask"  # a parent asks for results
    HURRY = "hurry"  # the parent has waited for a while, and there are results that it lacks
    LAST = "last"  # the last missing result is here
    PARENT_LOST = "parent lost"
    END = "end"  # the caller has all results, gave up, or is lost


class RelayAction(Enum):
    """Instruction that a transition gives."""

    TAKE = "take"  # the new parent replaces the former one
    ANSWER = "answer"  # the parent gets the results that it lacks
    LEAVE = "leave"  # the parent's request needs no answer
    FORGET = "forget"  # drop the results and requests
    REFUSE = "refuse"  # the call is over


WORKING, UNASKED, COMPLETE, ENDED = RelayState
_TAKE, _ANSWER, _LEAVE, _FORGET, _REFUSE = RelayAction
RELAY_TRANSITIONS: dict[tuple[RelayState, RelayEvent], tuple[RelayState, tuple[RelayAction, ...]]] = {
    (WORKING, RelayEvent.ASK): (WORKING, (_TAKE,)),
    (WORKING, RelayEvent.HURRY): (UNASKED, (_ANSWER,)),
    (WORKING, RelayEvent.LAST): (COMPLETE, (_ANSWER,)),
    (WORKING, RelayEvent.PARENT_LOST): (UNASKED, (_LEAVE,)),
    (WORKING, RelayEvent.END): (ENDED, (_LEAVE, _FORGET)),
    (UNASKED, RelayEvent.ASK): (WORKING, (_TAKE,)),
    (UNASKED, RelayEvent.HURRY): (UNASKED, ()),
    (UNASKED, RelayEvent.LAST): (COMPLETE, ()),
    (UNASKED, RelayEvent.PARENT_LOST): (UNASKED, ()),
    (UNASKED, RelayEvent.END): (ENDED, (_FORGET,)),
    (COMPLETE, RelayEvent.ASK): (COMPLETE, (_TAKE, _ANSWER)),
    (COMPLETE, RelayEvent.HURRY): (COMPLETE, ()),
    (COMPLETE, RelayEvent.LAST): (COMPLETE, ()),
    (COMPLETE, RelayEvent.PARENT_LOST): (COMPLETE, ()),
    (COMPLETE, RelayEvent.END): (ENDED, (_FORGET,)),
    (ENDED, RelayEvent.ASK): (ENDED, (_TAKE, _REFUSE)),
    (ENDED, RelayEvent.HURRY): (ENDED, ()),
    (ENDED, RelayEvent.LAST): (ENDED, ()),
    (ENDED, RelayEvent.PARENT_LOST): (ENDED, ()),
    (ENDED, RelayEvent.END): (ENDED, ()),
}


class RelayResult(Protocol):
    """Result of a worker, or of a subtree whose results are added up."""

    @property
    def failed(self) -> bool:
        """Return whether it is an error."""
        ...


R = TypeVar("R", bound=RelayResult)
# The transitions without ``TAKE``, which ``ask`` does: states after events, and instructions.
RELAY_STEPS = {
    event: (state, tuple(action for action in actions if action is not _TAKE))
    for event, (state, actions) in RELAY_TRANSITIONS.items()
}


class AskChild(NamedTuple):
    """Instruction: ask a child for its results from position ``held`` on."""

    subtree: Subtree
    held: int


_ask_child = partial(tuple.__new__, AskChild)  # without a call of Python code


class AnswerParent(NamedTuple):
    """Instruction: give a parent results, each with its place in the mesh; ``more`` will follow when it asks again.

    ``start`` is the position of the first of them.
    """

    parent: Any
    results: list[tuple[int, Any]]
    more: bool
    start: int


class LeaveParent(NamedTuple):
    """Instruction: a parent's request needs no answer."""

    parent: Any


class RefuseParent(NamedTuple):
    """Instruction: tell a parent that the call is over."""

    parent: Any


class ForgetCall(NamedTuple):
    """Instruction: give up the requests to these children."""

    heads: list[int]


Instruction = AskChild | AnswerParent | LeaveParent | RefuseParent | ForgetCall
NOTHING: Sequence[Instruction] = ()


class Relaying(Generic[R]):
    """A mesh call at one worker.

    Args:
        own: place of this worker in the mesh, if it runs a part; ``None`` at the caller.
        subtrees: those below this worker.
        folds: each subtree has one result, the sum of its workers', and an error ends the call.

    Attributes:
        state: see ``RELAY_TRANSITIONS``.
        results: the results that are here, in the order in which they came.
        owes: the parent was given some of the results, or is lost: it, or another one, will ask for the others.
        missing: places whose results are not here; with ``folds`` those of this worker and of the subtrees' roots.
    """

    def __init__(self, own: int | None, subtrees: Sequence[Subtree], folds: bool = False) -> None:
        self.state = UNASKED
        self.folds = folds
        self.owes = False
        self.results: list[tuple[int, R]] = []
        self.missing = set() if own is None else {own}
        self._own = own
        self._branches = {subtree[0].number: subtree for subtree in subtrees}
        self._taken: dict[int, int] = {}  # by child: how many of its results are here, if it is asked for more
        self._bypassed: set[int] = set()  # children whose children are asked, too
        members = [subtree[0] for subtree in subtrees] if folds else itertools.chain(*subtrees)
        self.missing.update([member.place for member in members])
        self._parent: Any = None
        self._held = 0

    def begin(self) -> Sequence[Instruction]:
        """Return the first requests to the children."""
        return [_ask_child((subtree, 0)) for subtree in self._branches.values()]

    # -- the parent's side

    def ask(self, parent: Any, held: int) -> Sequence[Instruction]:
        """Take a parent's request for the results from position ``held`` on."""
        former, self._parent, self._held, self.owes = self._parent, parent, held, False
        done = self._step(RelayEvent.ASK)
        return done if former is None else [LeaveParent(former), *done]

    @property
    def parent(self) -> Any:
        """The parent that waits for results; ``None`` if none does."""
        return self._parent

    @property
    def hurries(self) -> bool:
        """Return whether the parent waits and lacks results that are here."""
        return self.state is WORKING and not self.folds and len(self.results) > self._held

    def hurry(self) -> Sequence[Instruction]:
        """Give the parent what is here, if it lacks anything."""
        return self._step(RelayEvent.HURRY) if self.hurries else NOTHING

    def parent_lost(self, parent: Any) -> Sequence[Instruction]:
        """Note that a parent is lost; nothing happens if another one asks by now."""
        return self._step(RelayEvent.PARENT_LOST) if parent is self._parent else NOTHING

    def end(self) -> Sequence[Instruction]:
        """Forget everything: the caller has all results, gave up, or is lost."""
        return self._step(RelayEvent.END)

    # -- results

    def own(self, result: R) -> Sequence[Instruction]:
        """Take the result of this worker's own part."""
        assert self._own is not None
        index, self._own = self._own, None
        return self._progress([(index, result)])

    def answered(self, head: int, results: Sequence[tuple[int, R]], more: bool) -> Sequence[Instruction]:
        """Take results of a child.

        Args:
            head: its number.
            results: the results, with their places in the mesh.
            more: it has not given all; it is asked again.
        """
        subtree = self._branches.get(head)
        if subtree is None or not more:
            self._branches.pop(head, None)
            return self._progress(results)
        self._taken[head] = taken = self._taken.get(head, 0) + len(results)
        done = self._progress(results)
        return done if self.state in (COMPLETE, ENDED) else [AskChild(subtree, taken), *done]

    def broken(self, head: int) -> Sequence[Instruction]:
        """Ask a child again: the connection broke, and it is unknown whether the request arrived."""
        subtree = self._branches.get(head)
        return NOTHING if subtree is None or self.state is ENDED else [AskChild(subtree, self._taken.get(head, 0))]

    def bypass(self, head: int) -> Sequence[Instruction]:
        """Ask the children of a child, too: it says nothing. What it still gives is taken, if it comes first."""
        branch = self._branches.get(head)
        if branch is None or self.folds or self.state is ENDED:
            return NOTHING
        self._bypassed.add(head)
        return self._adopt(branch)

    def _adopt(self, branch: Subtree) -> list[Instruction]:
        adopted: list[Instruction] = []
        for subtree in children(branch):
            if any(member.place in self.missing for member in subtree):
                self._branches[subtree[0].number] = subtree
                adopted.append(AskChild(subtree, self._taken.get(subtree[0].number, 0)))
        return adopted

    def failed(self, head: int, error: Callable[[Member], R], adopts: bool) -> Sequence[Instruction]:
        """Note that the child of number ``head`` gives no more results.

        Args:
            head: its number.
            error: makes the error that a member has instead of a result.
            adopts: only the child failed, and its children are asked instead; otherwise all results of its subtree fail.
        """
        branch = self._branches.pop(head, None)
        self._taken.pop(head, None)
        if branch is None:
            return NOTHING
        # Those that were asked directly are asked again: they answer the last one that asked, which may be the lost child.
        adopted = self._adopt(branch) if adopts and not self.folds else []
        lost = branch[:1] if adopts or self.folds or head in self._bypassed else branch
        done = self._progress([(member.place, error(member)) for member in lost if member.place in self.missing])
        return done if self.state in (COMPLETE, ENDED) else [*adopted, *done]

    def _progress(self, results: Sequence[tuple[int, R]]) -> Sequence[Instruction]:
        missing = self.missing
        for index, result in results:
            if self.folds and result.failed and missing:  # of any member of a subtree
                return self._fail_whole((index, result))
            if index in missing:
                missing.remove(index)
                self.results.append((index, result))
        return NOTHING if missing else self._step(RelayEvent.LAST)

    def _fail_whole(self, failure: tuple[int, R]) -> Sequence[Instruction]:
        """End the call with one error: no other result is needed."""
        heads, self._branches = list(self._branches), {}
        self.missing.clear()
        self.results[:] = [failure]
        done = self._step(RelayEvent.LAST)
        return [*done, ForgetCall(heads)] if heads else done

    def _step(self, event: RelayEvent) -> Sequence[Instruction]:
        self.state, actions = RELAY_STEPS[self.state, event]
        return list(map(self._instruction, actions)) if actions else NOTHING

    def _instruction(self, action: RelayAction) -> Instruction:
        if action is _FORGET:
            heads, self._branches, self.owes = list(self._branches), {}, False
            self.results.clear()
            return ForgetCall(heads)
        parent, self._parent, self.owes = self._parent, None, self.state is UNASKED
        if action is _LEAVE:
            return LeaveParent(parent)
        if action is _REFUSE:
            return RefuseParent(parent)
        start = 0 if self.folds else self._held
        return AnswerParent(parent, self.results[start:], self.state is not COMPLETE, start)
