"""``compile``: a function whose calls are recorded, and then replayed."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import Tensor, intercepted, interceptors_entered
from .branches import MISSED, each_of
from .division import Segment
from .entries import Entry
from .errors import GivenUp, Unrecordable
from .explained import Explained
from .keys import key_of
from .loops import can_loop
from .plan import Plan
from .recording import Recording, record
from .report import report
from .segments import Segments
from .variations import plain_arguments, varying

_ALIKE = 16  # keys without a plan: what differs between them is an argument that is another one in each call
_KEYS = 64  # keys of one function, the least recently used are dropped


class Compiled(Explained):
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
        self._said: set[str] = set()
        self._segment = segment
        self._segments = whole or Segments(function, self)
        self._divided = False  # whether all calls run in segments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # By a profiler, a recording around this call, autocast, anomaly mode.
        if interceptors_entered and intercepted():
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

        A plan that calls other workers is one for this if these take part in its backward.

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
            if isinstance(plan, Plan) and (plan.source.halves or not plan.remote) and plan.fits(tensors):
                return plan, tensors
        if entry.reason is not None:
            raise GivenUp(entry.reason, final=True)
        return None

    def drop(self, plan: Plan) -> None:
        """Drop a plan in which another worker could not take part: the next call that is no replay is recorded."""
        with self._lock:
            for entry in self._entries.values():
                entry.plans = [each for each in entry.plans if each is not plan]

    def _refuse(self, entry: Entry, plan: Any, refusal: GivenUp) -> None:
        """Drop a plan in which another worker could not take part; after some, all such calls run eagerly."""
        with self._lock:
            entry.refuse(plan, refusal)
        if entry.reason is not None:
            self._tell(f"runs eagerly: {entry.reason}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._function, name)  # parameters() and train() of a module

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or "_divided" not in self.__dict__:  # its own, made by __init__()
            super().__setattr__(name, value)
        else:
            setattr(self._function, name, value)  # as the function itself would read it

    def __delattr__(self, name: str) -> None:
        delattr(self._function, name)

    def __repr__(self) -> str:
        return f"compile({self._function!r})"

    def __reduce__(self) -> Any:
        return type(self), (self._function, self._explain, self._fast)  # a copy records calls of its own

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

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
            self._function, self._name, tensors, args, kwargs, others, self._fast, entry.called, whole
        )
        with self._lock:
            entry.learn(recording, tensors, self._segment, self._shared)
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

    def _compiled(self, function: Callable[..., Any], segment: Segment) -> Compiled:
        return Compiled(function, self._explain, self._fast, segment, self._segments)


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
