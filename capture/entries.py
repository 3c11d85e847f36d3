"""``Entry``: calls of a compiled function that have one key, and what the recordings of them taught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .branches import Tree, joined
from .division import Segment
from .errors import DISTURBED, EARLY, GivenUp
from .looks import is_rounded, varies
from .plan import Plan
from .recording import Recording
from .segments import worth

_TRIES = 4  # recordings that found the same objects; if no two of them are the same, it is left at eager calls
_RECORDINGS = 16  # recordings without a plan
_PLANS = 8  # plans of one key, which differ in what the function reads
_DROPPED = 64  # plans of one tree; as many that were dropped show that a tree does not help


class Entry:
    """Calls with one key, and what is known of them. The lock of its table is held while it is changed.

    Attributes:
        plans: programs for them, which differ in what the function reads beside its arguments.
        recordings: those without a program; the next recording is compared with them.
        tries: recordings since the last program.
        given_up: replays in which another worker could not take part, since the last in which it could.
        called: whether there was a call; the first may make what later ones find, as modules with lazy parameters do.
        reason: why calls with this key run eagerly; ``None`` if they do not.
        given: the arguments that are no tensors, by the names of parameters.
    """

    def __init__(self) -> None:
        self.plans: list[Plan | Tree] = []
        self.recordings: list[Recording] = []
        self.tries = self.given_up = 0
        self.called = False
        self.reason: str | None = None
        self.given: Any = None

    def refuse(self, plan: Any, refusal: GivenUp) -> None:
        """Drop a plan in which another worker could not take part; after some, all such calls run eagerly."""
        self.plans = [each for each in self.plans if each is not plan]
        self.given_up += 1
        if refusal.final or self.given_up >= _TRIES:
            self.reason = str(refusal)

    def learn(self, recording: Recording, tensors: list[Any], segment: Segment | None, shared: bool) -> None:
        """Take a recording: it makes a plan, waits for one like it, or shows why there is none.

        Args:
            recording: of a call; if there is a reason, it gets the lines that are left out.
            tensors: those among the arguments of the call.
            segment: what the function is a segment of, if it is one.
            shared: whether other threads may change its tensors meanwhile: such a recording is made again.
        """
        self.tries += 1
        if recording.reason is not None:
            again = shared and recording.reason.startswith((DISTURBED, EARLY)) and self.tries < _RECORDINGS
            self.reason = recording.reason if self.called and not again else None
        elif same := [other for other in self.recordings if recording.same(other)]:
            self._confirm(recording, same, tensors, segment)
        else:
            self._compare(recording, segment)
        self.called = True
        if self.reason is not None:
            self.recordings = []
            # No longer trees: their replays are given up.
            self.plans = [each for each in self.plans if isinstance(each, Plan)]

    def _confirm(
        self, recording: Recording, same: Sequence[Recording], tensors: list[Any], segment: Segment | None
    ) -> None:
        """Take a recording of a call that did the same as others."""
        if recording.plan is None:  # recorded at the same time in several threads
            self.tries -= 1
        elif segment is not None and not worth(segment, recording):
            self.reason = ""
        else:
            self._add(recording.plan, tensors)
            if self.reason is not None:
                recording.lines = [each.at for each in recording.plan.looks[-1:] if each.at is not None]
            self.recordings = [other for other in self.recordings if other not in same]
            self.tries = 0

    def _compare(self, recording: Recording, segment: Segment | None) -> None:
        """Take a recording of a call that did something else than all others."""
        # Others that found the same objects should have done the same.
        alike = [other for other in self.recordings if other.state is not None and other.state.same()]
        places = [recording.parting(other) for other in alike]
        looks = [None if place is None else recording.look(place, other) for place, other in zip(places, alike)]
        branches = [each for each in looks if each is not None and not is_rounded(each[-1])]
        if len(alike) - len(branches) + 1 >= _TRIES or (branches and self.tries >= _RECORDINGS):
            look, different = looks[-1], f"each call did something else: {recording.difference(places[-1])}"
            self.reason = different if look is None else varies(*look[1:3])
            recording.lines = recording.at(places[-1])
        elif self.tries >= (_RECORDINGS if segment is None else _TRIES):
            self.reason = "what it reads beside its arguments changes from call to call"
            states = [each.state for each in self.recordings[-1:] if each.state]
            recording.names = [name for state in states for name in state.changed()]
        else:
            self.recordings.append(recording)

    def _add(self, plan: Plan, tensors: list[Any]) -> None:
        self.plans = [each for each in self.plans if isinstance(each, Tree) or all(p.fits() for p in each.remote)]
        fitting = [each for each in self.plans if each.fits(tensors)]
        if plan.looks:
            former, tree = joined([each for each in fitting if isinstance(each, Tree)], plan, tensors)
            self.plans = [tree, *[each for each in self.plans if each is not former]][:_PLANS]
            if tree.dropped >= _DROPPED:
                self.reason = varies(plan.looks[-1].name, plan.looks[-1].line)
        elif not any(isinstance(each, Plan) for each in fitting):  # another thread may have been faster
            self.plans = [plan, *self.plans][:_PLANS]
