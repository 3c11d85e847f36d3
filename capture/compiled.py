"""``compile``: a function whose calls are recorded, and then replayed."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import Tensor, interceptors_entered
from .branches import MISSED, Tree, each_of, joined
from .description import Description, DrawnPart
from .division import Segment
from .errors import DISTURBED, GivenUp, Unrecordable
from .keys import key_of
from .looks import is_rounded, varies
from .loops import can_loop
from .picture import drawn_part, picture
from .plan import Plan
from .recording import Recording, record
from .report import plan_lines, report
from .segments import Segments, worth
from .variations import plain_arguments, varying

_TRIES = 4  # recordings that found the same objects; if no two of them are the same, it is left at eager calls
_RECORDINGS = 16  # recordings without a plan
_PLANS = 8  # plans of one key, which differ in what the function reads
_DROPPED = 64  # plans of one tree; as many that were dropped show that a tree does not help
_ALIKE = 16  # keys without a plan: what differs between them is an argument that is another one in each call
_KEYS = 64  # keys of one function, the least recently used are dropped


class Entry:
    """Calls with one key, and what is known of them.

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


class Compiled:
    """A function that records what its calls do, and replays it: the result of ``compile``.

    Args:
        function: the function.
        explain: whether to print what is recorded, and what is not.
        fast: whether chains of arithmetic become compiled loops.
        segment: what it is of a larger function, if it is a segment of one.
        whole: that function.
    """

    _shared = False  # whether other threads may change its tensors meanwhile: such a recording is made again

    def __init__(
        self,
        function: Callable[..., Any],
        explain: bool,
        fast: bool = False,
        segment: Segment | None = None,
        whole: Segments | None = None,
    ) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self._function, self._explain, self._fast = function, explain, fast
        self._entries: OrderedDict[Any, Entry] = OrderedDict()
        self._lock = threading.Lock()  # held while the table is read or changed, never while a function runs
        self._recording = threading.local()
        self._said: set[str] = set()
        self._segment = segment
        self._segments = whole or Segments(function, self)
        self._divided = False  # whether all calls run in segments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if interceptors_entered:  # a profiler, a recording around this call, autocast, anomaly mode
            return self._function(*args, **kwargs)
        return self.called(args, kwargs)

    def called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a call does where no operation of this thread is watched.

        Args:
            args, kwargs: the arguments of the call.
        """
        if self._divided:
            return self._segments.function(*args, **kwargs)
        try:
            key, tensors = key_of(args, kwargs)
        except Unrecordable as error:
            if self._segment is None:
                self._say(f"{self._name}() runs eagerly: {error}")
            else:
                self._segments.leave_out(self._segment.lines)
            return self._function(*args, **kwargs)
        entry = self._entry(key)
        if entry.given is None and self._varies(entry, args, kwargs):
            return self._eager(*args, **kwargs)
        for plan in entry.plans:
            if plan.fits(tensors):
                try:
                    result = plan.replay(tensors)
                except GivenUp as refusal:
                    self._refuse(entry, plan, refusal)
                    break
                except Exception:
                    if not plan.pure:
                        raise
                    return self._function(*args, **kwargs)  # it fails again, and its message names the operation
                if result is not MISSED:
                    entry.given_up = 0
                    return result
        if entry.reason is not None:
            return self._eager(*args, **kwargs)
        return self._record(entry, tensors, args, kwargs)

    @property
    def _eager(self) -> Callable[..., Any]:
        return self._function if self._segment is not None else self._segments.function

    def fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Plan, Sequence[Tensor]] | None:
        """Return a plan without looks that fits a call, and the tensors of the call; ``None`` if there is none now.

        Args:
            args, kwargs: the arguments of the call.

        Raises:
            GivenUp: all such calls run eagerly; its text is the reason.
        """
        try:
            key, tensors = key_of(args, kwargs)
        except Unrecordable as error:
            raise GivenUp(str(error), final=True) from None
        entry = self._entry(key)
        for plan in entry.plans:
            if isinstance(plan, Plan) and not plan.remote and plan.fits(tensors):
                return plan, tensors
        if entry.reason is not None:
            raise GivenUp(entry.reason, final=True)
        return None

    def _refuse(self, entry: Entry, plan: Any, refusal: GivenUp) -> None:
        """Drop a plan in which another worker could not take part; after some, all such calls run eagerly."""
        with self._lock:
            entry.plans = [each for each in entry.plans if each is not plan]
            entry.given_up += 1
            if refusal.final or entry.given_up >= _TRIES:
                entry.reason = str(refusal)
        if entry.reason is not None:
            self._tell(f"runs eagerly: {entry.reason}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._function, name)  # parameters() and train() of a module

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def explain(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a text about the plans: what was recorded, what was not and why, chains, and the memory that they take.

        Args:
            path: a file to write, with the ending ".svg": a picture of the plan that was used last, in all its parts, and of
                the workers that it calls.

        Raises:
            ValueError: there is no plan to draw.
        """
        entries = self._known()
        if path is not None:
            plans = self.plans()
            if not plans:
                raise ValueError(f"{self._name}() has no plan to draw; call it three times first")
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture(self._drawn()))
        parts = [each.explain() for each in self._segments.used] if self._segment is None else []
        return "\n".join([report(self._name, entries, bool(parts)), *parts])

    def description(self) -> Description:
        """Return the plan that was used last, for workers that call this; without a plan, the reason."""
        plans = self.plans()
        if not plans:
            reasons = [each.reason for each in self._known() if each.reason]
            return Description([f"eager: {reasons[-1]}" if reasons else "no plan yet"])
        return Description(plan_lines(plans[-1]), self._drawn())

    def _drawn(self) -> list[DrawnPart]:
        """Return the parts of the plan that was used last; of a divided function, those of each segment."""
        segments = [each for each in self._segments.used if each.plans()] if self._segment is None else []
        if segments:
            return [part for each in segments for part in each._drawn()]
        plan = self.plans()[-1]
        title = "calls" if self._segment is None else self._name.partition(", ")[2]
        parts = [drawn_part(*each) for each in zip([title, *map(str, plan.looks)], plan.sources)]
        for remote in plan.remote:
            if (found := remote.description()) is not None:
                parts += [DrawnPart(remote.text, ""), *(found.parts or [DrawnPart(line, "") for line in found.lines])]
        return parts

    def plans(self) -> list[Plan]:
        """Return the plans, for ``Plan.save``: those of each kind of arguments, the kind that was used last at the end."""
        parts = [plan for each in self._segments.used for plan in each.plans()] if self._segment is None else []
        return [plan for entry in self._known() for plan in reversed(each_of(entry.plans))] + parts

    def _known(self) -> list[Entry]:
        with self._lock:
            return list(self._entries.values())

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", type(self._function).__name__)

    def _entry(self, key: Any) -> Entry:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = Entry()
            else:
                self._entries.move_to_end(key)
            dropped = len(self._entries) > _KEYS and self._entries.popitem(last=False)
        if dropped:
            self._say(
                f"{self._name}() was called in more than {_KEYS} ways: the plans that were not used for the longest time are "
                "dropped; give it arguments of few different shapes and values"
            )
        return entry

    def _record(self, entry: Entry, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        with self._lock:
            others = list(entry.recordings)
        whole = None if self._segment is None else self._segments.code
        recording, result = record(
            self._function, self._name, tensors, args, kwargs, bool(others), self._fast, entry.called, whole
        )
        with self._lock:
            self._learn(entry, recording, tensors)
        if entry.reason is not None:
            in_part = self._leave_out(recording)
            if entry.reason:
                self._tell(f"runs eagerly{' in part' * in_part}: {entry.reason}")
        elif self._explain and recording.plan in each_of(entry.plans):
            print(report(self._name, [entry]))
        return result

    def _leave_out(self, recording: Recording) -> bool:
        """Let the lines that cannot be recorded run eagerly; return whether the others are compiled."""
        segments = self._segments
        if not recording.divisible:
            return segments.leave_out(None)
        lines = [*recording.lines, *segments.lines_with(recording.names)]
        if recording.stores:
            lines += segments.lines_that_store()
        return self._without(lines)

    def _without(self, lines: Sequence[int]) -> bool:
        if self._segment is not None:
            lines = [each for each in lines if each in self._segment.lines] or self._segment.lines
        return bool(lines) and self._segments.leave_out(lines)

    def _varies(self, entry: Entry, args: Any, kwargs: Any) -> bool:
        """Return whether no call is like another one, as arguments are others in each; then it is divided."""
        entry.given = plain_arguments(self._function, args, kwargs)
        entries = self._known()
        replays = sum(plan.replays for each in entries for plan in each.plans)
        most = 0 if self._segment is None else len(entries)  # a segment is divided early: it is small
        if len(entries) < (_ALIKE if self._segment is None else _ALIKE // 2) or replays > most:
            return False
        names = varying(entry.given, entries[-2].given or {})
        if not names or not (self._without(self._segments.lines_with(names)) or self._segment is not None):
            return False
        self._divided = self._segment is None
        self._tell(f"runs eagerly in part: the arguments {', '.join(names)} are others from call to call")
        return True

    def _learn(self, entry: Entry, recording: Recording, tensors: list[Any]) -> None:
        # lock held
        entry.tries += 1
        same = [other for other in entry.recordings if recording.same(other)] if recording.reason is None else []
        if recording.reason is not None:
            again = self._shared and recording.reason.startswith(DISTURBED) and entry.tries < _RECORDINGS
            entry.reason = recording.reason if entry.called and not again else None
        elif same and recording.plan is not None and self._segment is not None and not worth(self._segment, recording):
            entry.reason = ""
        elif same and recording.plan is not None:
            self._add(entry, recording.plan, tensors)
            if entry.reason is not None:
                recording.lines = [each.at for each in recording.plan.looks[-1:] if each.at is not None]
            entry.recordings = [other for other in entry.recordings if other not in same]
            entry.tries = 0
        elif same:  # recorded at the same time in several threads
            entry.tries -= 1
        else:
            # Others that found the same objects should have done the same.
            alike = [other for other in entry.recordings if other.state is not None and other.state.same()]
            places = [recording.parting(other) for other in alike]
            looks = [None if place is None else recording.look(place, other) for place, other in zip(places, alike)]
            branches = [each for each in looks if each is not None and not is_rounded(each[-1])]
            if len(alike) - len(branches) + 1 >= _TRIES or (branches and entry.tries >= _RECORDINGS):
                look, different = looks[-1], f"each call did something else: {recording.difference(places[-1])}"
                entry.reason = different if look is None else varies(*look[1:3])
                recording.lines = recording.at(places[-1])
            elif entry.tries >= (_RECORDINGS if self._segment is None else _TRIES):
                entry.reason = "what it reads beside its arguments changes from call to call"
                recording.names = [
                    name for each in entry.recordings[-1:] if each.state for name in each.state.changed()
                ]
            else:
                entry.recordings.append(recording)
        entry.called = True
        if entry.reason is not None:
            entry.recordings = []
            entry.plans = [
                each for each in entry.plans if isinstance(each, Plan)
            ]  # no longer replays that are given up

    def _add(self, entry: Entry, plan: Plan, tensors: list[Any]) -> None:
        # lock held
        entry.plans = [each for each in entry.plans if isinstance(each, Tree) or all(p.fits() for p in each.remote)]
        fitting = [each for each in entry.plans if each.fits(tensors)]
        if plan.looks:
            former, tree = joined([each for each in fitting if isinstance(each, Tree)], plan, tensors)
            entry.plans = [tree, *[each for each in entry.plans if each is not former]][:_PLANS]
            if tree.dropped >= _DROPPED:
                entry.reason = varies(plan.looks[-1].name, plan.looks[-1].line)
        elif not any(isinstance(each, Plan) for each in fitting):  # another thread may have been faster
            entry.plans = [plan, *entry.plans][:_PLANS]

    def _compiled(self, function: Callable[..., Any], segment: Segment) -> Compiled:
        return Compiled(function, self._explain, self._fast, segment, self._segments)

    def _tell(self, text: str) -> None:
        """Warn that calls run eagerly, or a part of them."""
        self._segments.owner._say(f"{self._segments.owner._name}() {text}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            warnings.warn(text, stacklevel=4)


def compile(function: Any = None, /, *, fast_math: bool = False, explain: bool = False) -> Any:  # noqa: A001
    """Return ``function`` with its calls recorded and replayed.

    The first two calls with some shapes, dtypes and other arguments run as they are, and are recorded. If both did the same,
    later such calls replay it: NumPy's functions, one after the other, into memory that was made once. What cannot be
    recorded runs as it is, with a warning that says why.

    It can be used as a decorator: ``@compile`` or ``@compile(explain=True)``.

    Args:
        function: a function or a module. It may do a whole training step, with ``backward()`` and ``optimizer.step()``.
        fast_math: allow other roundings: chains of arithmetic become compiled loops, if the package ``numba`` is installed (the
            extra ``fast``); else a warning says so. By default results are those of eager calls, bit by bit.
        explain: print what was recorded when a plan is made; ``explain()`` of the result returns the same.

    Returns:
        A function with the same parameters.

    Raises:
        TypeError: ``function`` cannot be called.
    """
    if function is None:
        return functools.partial(compile, fast_math=fast_math, explain=explain)
    if not callable(function):
        raise TypeError(f"compile() takes a function or a module, not {type(function).__name__}")
    return Compiled(function, explain, fast_math and can_loop())
