"""``compile``: a function whose calls are recorded, and then replayed."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..core.extend import interceptors_entered
from .branches import MISSED, Tree, each_of, joined
from .errors import Unrecordable
from .keys import key_of
from .looks import is_rounded, varies
from .loops import can_loop
from .picture import picture
from .plan import Plan
from .recording import Recording, record
from .report import report

_TRIES = 4  # recordings that found the same objects; if no two of them are the same, it is left at eager calls
_RECORDINGS = 16  # recordings without a plan
_PLANS = 8  # plans of one key, which differ in what the function reads
_DROPPED = 64  # plans of one tree; as many that were dropped show that a tree does not help
_KEYS = 64  # keys of one function, the least recently used are dropped


class Entry:
    """Calls with one key, and what is known of them.

    Attributes:
        plans: programs for them, which differ in what the function reads beside its arguments.
        recordings: those without a program; the next recording is compared with them.
        tries: recordings since the last program.
        called: whether there was a call; the first may make what later ones find, as modules with lazy parameters do.
        reason: why calls with this key run eagerly; ``None`` if they do not.
    """

    def __init__(self) -> None:
        self.plans: list[Plan | Tree] = []
        self.recordings: list[Recording] = []
        self.tries = 0
        self.called = False
        self.reason: str | None = None


class Compiled:
    """A function that records what its calls do, and replays it: the result of ``compile``.

    Args:
        function: the function.
        explain: whether to print what is recorded, and what is not.
        fast: whether chains of arithmetic become compiled loops.
    """

    def __init__(self, function: Callable[..., Any], explain: bool, fast: bool = False) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self._function, self._explain, self._fast = function, explain, fast
        self._entries: OrderedDict[Any, Entry] = OrderedDict()
        self._lock = threading.Lock()  # held while the table is read or changed, never while a function runs
        self._recording = threading.local()
        self._said: set[str] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if interceptors_entered:  # a profiler, a recording around this call, autocast, anomaly mode
            return self._function(*args, **kwargs)
        try:
            key, tensors = key_of(args, kwargs)
        except Unrecordable as error:
            self._say(f"{self._name}() runs eagerly: {error}")
            return self._function(*args, **kwargs)
        entry = self._entry(key)
        for plan in entry.plans:
            if plan.fits(tensors):
                try:
                    result = plan.replay(tensors)
                except Exception:
                    if not plan.pure:
                        raise
                    return self._function(*args, **kwargs)  # it fails again, and its message names the operation
                if result is not MISSED:
                    return result
        if entry.reason is not None:
            return self._function(*args, **kwargs)
        return self._record(entry, tensors, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._function, name)  # parameters() and train() of a module

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def explain(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a text about the plans: what was recorded, what was not and why, chains, and the memory that they take.

        Args:
            path: a file to write, with the ending ".svg": a picture of the plan that was used last.

        Raises:
            ValueError: there is no plan to draw.
        """
        with self._lock:
            entries = list(self._entries.values())
        if path is not None:
            plans = self.plans()
            if not plans:
                raise ValueError(f"{self._name}() has no plan to draw; call it three times first")
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture(plans[-1].source))
        return report(self._name, entries)

    def plans(self) -> list[Plan]:
        """Return the plans, for ``Plan.save``: those of each kind of arguments, the kind that was used last at the end."""
        with self._lock:
            return [plan for entry in self._entries.values() for plan in reversed(each_of(entry.plans))]

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
        recording, result = record(self._function, self._name, tensors, args, kwargs, bool(others), self._fast)
        with self._lock:
            self._learn(entry, recording, tensors)
        if entry.reason is not None:
            self._say(f"{self._name}() runs eagerly: {entry.reason}")
        elif self._explain and recording.plan in each_of(entry.plans):
            print(report(self._name, [entry]))
        return result

    def _learn(self, entry: Entry, recording: Recording, tensors: list[Any]) -> None:
        # lock held
        entry.tries += 1
        same = [other for other in entry.recordings if recording.same(other)] if recording.reason is None else []
        if recording.reason is not None:
            entry.reason = recording.reason if entry.called else None
        elif same and recording.plan is not None:
            self._add(entry, recording.plan, tensors)
            entry.recordings = [other for other in entry.recordings if other not in same]
            entry.tries = 0
        elif same:  # recorded at the same time in several threads
            entry.tries -= 1
        else:
            # Others that found the same objects should have done the same.
            alike = [other for other in entry.recordings if other.state is not None and other.state.same()]
            looks = [recording.parting(other) for other in alike]
            branches = [each for each in looks if each is not None and not is_rounded(each[-1])]
            if len(alike) - len(branches) + 1 >= _TRIES or (branches and entry.tries >= _RECORDINGS):
                look, different = looks[-1], f"each call did something else: {recording.difference(alike[-1])}"
                entry.reason = different if look is None else varies(*look[1:3])
            elif entry.tries >= _RECORDINGS:
                entry.reason = "what it reads beside its arguments changes from call to call"
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
        fitting = [each for each in entry.plans if each.fits(tensors)]
        if plan.looks:
            former, tree = joined([each for each in fitting if isinstance(each, Tree)], plan, tensors)
            entry.plans = [tree, *[each for each in entry.plans if each is not former]][:_PLANS]
            if tree.dropped >= _DROPPED:
                entry.reason = varies(plan.looks[-1].name, plan.looks[-1].line)
        elif not any(isinstance(each, Plan) for each in fitting):  # another thread may have been faster
            entry.plans = [plan, *entry.plans][:_PLANS]

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
