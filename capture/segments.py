"""``Segments``: a function of which some lines run eagerly, and the statements between them are compiled.

The function is written anew: each run of statements that can be recorded is a call of a function of its own, which gets the
variables that they read, and returns those that they write. So Python itself goes from one to the next, over branches, loops
and what is looked at, with the numbers of this call.
"""

from __future__ import annotations

import ast
import copy
import inspect
import threading
from collections.abc import Callable, Collection, Iterable
from typing import Any

from .code_names import global_names
from .division import Division, Segment, declared, name_of
from .errors import Unrecordable
from .modules import body_of, instead_of
from .written import Written

_REFUSED = frozenset(["__class__", "_getframe"])
_REFUSED_GLOBALS = frozenset(["locals", "eval", "exec", "vars", "dir", "super"])
# Names in programs that look at the inside of a graph, which a replay does not have.
GRAPHS = frozenset(
    [
        *("retain_grad", "register_hook", "register_full_backward_hook", "register_post_accumulate_grad_hook"),
        *("requires_grad_", "create_graph", "autograd", "jacobian", "hessian", "grad_fn", "detach_"),
    ]
)
_FEW = 3  # operations: fewer gain nothing over eager calls


class Segments:
    """A function in segments.

    Args:
        function: the function, or a module.
        owner: compiles segments: a ``Compiled``.

    Attributes:
        owner: that.
        function: what to call: the function itself as long as nothing of it is compiled.
        used: the segments that it calls, and their compiled functions.
    """

    def __init__(self, function: Callable[..., Any], owner: Any) -> None:
        self.function, self._original, self.owner = function, function, owner
        self._body = body_of(function)
        self.used: list[Any] = []
        self._known: dict[Any, Any] = {}
        self._lines: set[int] = set()
        self._written: Written | None = None
        self._refused = False
        self._lock = threading.Lock()  # held while the function is written anew; no code of the user runs

    def leave_out(self, lines: Iterable[int] | None = None) -> bool:
        """Let statements run eagerly; return whether others are compiled.

        Args:
            lines: of these statements; ``None``: all of them.
        """
        with self._lock:
            try:
                if self._refused or lines is None:
                    raise Unrecordable("it is not divided")
                self._lines.update(lines)
                self._write(self._source())
            except Exception:  # a function that cannot be written anew is no error of the caller
                self._refused, self.function, self.used = True, self._original, []
            return bool(self.used)

    @property
    def code(self) -> Any:
        """The code of the function, or of a module's ``forward``, if it is one of Python."""
        return getattr(self._body, "__code__", None)

    def lines_that_store(self) -> list[int]:
        """Return the lines in which the function itself changes objects: attributes, items, variables around it."""

        def stores(each: ast.AST, written: Written) -> bool:
            return _stores(each, {*written.code.co_freevars, *declared(written.tree)})

        return self._lines_where(stores)

    def lines_with(self, names: Collection[str]) -> list[int]:
        """Return the lines in which there are names: of variables, of attributes, or keys."""

        def has_name(each: ast.AST, written: Written) -> bool:
            name = getattr(each, "id", getattr(each, "attr", getattr(each, "value", None)))
            return isinstance(each, (ast.Name, ast.Attribute, ast.Constant)) and name in names

        return self._lines_where(has_name) if names else []

    def _lines_where(self, holds: Callable[[ast.AST, Written], bool]) -> list[int]:
        with self._lock:
            try:
                written = self._source()
            except Unrecordable:
                return []
            parts = [each for statement in written.tree.body for each in ast.walk(statement)]
            return [each.lineno for each in parts if hasattr(each, "lineno") and holds(each, written)]

    def _source(self) -> Written:
        # lock held
        self._written = self._written or _written(self._body)
        return self._written

    def _write(self, written: Written) -> None:
        # lock held
        tree = copy.deepcopy(written.tree)
        division = Division(tree, written, self._lines)
        tree.body = division.block(tree.body, set(division.arguments))
        self.used = [self._segment(each) for each in division.found]
        more = {name_of(place): each for place, each in enumerate(self.used)}
        made = written.made(tree, more)
        self.function = instead_of(self._body, made, self._original) if more else self._original

    def _segment(self, segment: Segment) -> Any:
        found = self._known.get(segment.key)
        if found is None:
            assert self._written is not None
            function = self._written.made(segment.definition("segment"), bound=False)
            first, last = segment.lines[0], segment.lines[-1]
            function.__name__ = f"{self._written.code.co_name}, lines {first} to {last}"
            found = self._known[segment.key] = self.owner._compiled(function, segment)
        return found


def _written(function: Any) -> Written:
    written = Written(function)
    code = written.code
    names = {*code.co_names, *code.co_varnames, *code.co_freevars}
    keywords = {each.arg for each in ast.walk(written.tree) if isinstance(each, ast.keyword)}
    deleted = any(isinstance(each, ast.Delete) for each in ast.walk(written.tree))
    handled = any(isinstance(each, ast.ExceptHandler) and each.name for each in ast.walk(written.tree))
    generator = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    refused = not (_REFUSED | GRAPHS).isdisjoint(names | keywords) or "inputs" in keywords  # of backward()
    refused = refused or not _REFUSED_GLOBALS.isdisjoint(global_names(code))
    if deleted or handled or generator or refused:
        raise Unrecordable("it cannot be divided")
    return written


def _stores(each: ast.AST, outer: Collection[str]) -> bool:
    context = getattr(each, "ctx", None)
    target = isinstance(each, (ast.Attribute, ast.Subscript)) or (isinstance(each, ast.Name) and each.id in outer)
    return target and isinstance(context, (ast.Store, ast.Del))


def worth(segment: Segment, recording: Any) -> bool:
    """Return whether a segment with a plan is replayed: it has enough to do, and what it returns is as it is eagerly.

    Gradients that come from outside of a segment and from inside must be added up in the same order as eagerly. So nothing
    but ``backward()`` may follow from its results that have a graph. A list or dictionary that it returns is a copy.
    """
    events, results = recording.recorder.events, recording.result
    if len(events) < _FEW and not any(each[0] == "backward" for each in events):
        return False
    if segment.results is None:
        return True
    graphs = {segment.results[place] for place in recording.graphs} if recording.plan.source.halves else set()
    return graphs <= segment.safe and not _has_copies(results)


def _has_copies(form: Any) -> bool:
    """Return whether there is a list or a dictionary in the form of a result."""
    return isinstance(form, tuple) and any(each is list or each is dict or _has_copies(each) for each in form)
