"""``Division``: which statements of a function are compiled together, and the function without them."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from .variables import lets_pass, needs, reads, surely_written, writes
from .written import Written

_BARRED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Delete, ast.Break, ast.Continue, ast.NamedExpr),
    *(ast.Return, ast.Try, ast.AsyncFor, ast.AsyncWith),
)
# Methods of a result that make no graph from it, and attributes.
_HARMLESS = frozenset(
    [
        *(
            "item",
            "tolist",
            "numpy",
            "detach",
            "argmax",
            "argmin",
            "isfinite",
            "isnan",
            "isinf",
            "size",
            "dim",
            "numel",
        ),
        *("shape", "dtype", "ndim", "backward"),
    ]
)
_QUICK = frozenset(
    ["detach", "item", "tolist", "size", "dim", "numel"]
)  # methods: nothing is gained by a segment of them
_READERS = frozenset(["float", "int", "bool", "len", "print", "str", "repr", "isinstance"])
_TRIVIAL = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context, ast.Tuple)


class Segment(NamedTuple):
    """Statements that are compiled.

    Attributes:
        statements: in order.
        given: the variables that they read.
        results: those that they write and that others read; ``None`` if the last one returns.
        safe: those of them from which no other statement makes a graph.
    """

    statements: Sequence[ast.stmt]
    given: tuple[str, ...]
    results: tuple[str, ...] | None
    safe: frozenset[str]

    @property
    def lines(self) -> range:
        """The lines of the file that they take."""
        return range(self.statements[0].lineno, (self.statements[-1].end_lineno or 0) + 1)

    @property
    def key(self) -> Any:
        """The lines and variables: equal for two segments that are the same."""
        return self.lines, self.given, self.results

    def definition(self, name: str) -> ast.FunctionDef:
        """Return a function of these statements.

        Args:
            name: of the function.
        """
        (made,) = ast.parse(f"def {name}({', '.join(self.given)}): {_returned(self.results or ())}").body
        assert isinstance(made, ast.FunctionDef)
        _move(made, self.lines[-1])
        made.lineno = self.lines[0]
        made.body = [*copy.deepcopy(list(self.statements)), *(made.body if self.results is not None else [])]
        return made

    def call(self, name: str) -> ast.stmt:
        """Return the statement that calls this function."""
        call = f"{name}({', '.join(self.given)})"
        before = "return " if self.results is None else f"({', '.join(self.results)},) = " if self.results else ""
        (made,) = ast.parse(before + call).body
        _move(made, self.lines[0])
        return made


class Division:
    """The division of a function into segments.

    Args:
        tree: the function.
        written: the same, and its code.
        left_out: lines that run eagerly.

    Attributes:
        found: the segments.
        arguments: names of the parameters.
    """

    def __init__(self, tree: ast.FunctionDef, written: Written, left_out: Collection[int]) -> None:
        code = written.code
        count = code.co_argcount + code.co_kwonlyargcount
        more = bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.arguments = code.co_varnames[: count + more]
        self._tree, self._left_out = tree, frozenset(left_out)
        self._cells = frozenset(code.co_cellvars)
        self._outer = frozenset(code.co_freevars) | declared(tree)
        self._locals = (frozenset(code.co_varnames) | writes(tree)) - self._outer
        self._reads = reads(tree)
        self.found: list[Segment] = []

    def block(self, statements: Sequence[ast.stmt], bound: set[str], loop: bool = False) -> list[ast.stmt]:
        """Return statements with calls of segments in the places of some.

        Args:
            statements: those of the function, or of a branch or loop in it.
            bound: variables that surely have a value.
            loop: whether they may run several times.
        """
        done: list[ast.stmt] = []
        run: list[ast.stmt] = []
        before = set(bound)  # the run
        for each in statements:
            if self._fits(each, bound):
                run.append(each)
            elif isinstance(each, ast.Return) and self._fits_result(each, bound):
                done += self._segment([*run, each], before, loop)
                run = []
            else:
                done += self._segment(run, before, loop)
                run = []
                self._divide(each, bound, loop)
                done.append(each)
            bound = bound | surely_written([each])
            if not run:
                before = set(bound)
        return done + self._segment(run, before, loop)

    def _divide(self, statement: ast.stmt, bound: set[str], loop: bool) -> None:
        """Divide the statements in a branch, a loop, or a block."""
        if isinstance(statement, (ast.For, ast.While)):
            targets = writes(statement.target) if isinstance(statement, ast.For) else set()
            statement.body = self.block(statement.body, bound | targets, True)
        elif isinstance(statement, ast.If):
            statement.body = self.block(statement.body, bound, loop)
            statement.orelse = self.block(statement.orelse, bound, loop) if statement.orelse else []
        elif isinstance(statement, ast.With) and lets_pass(statement):
            statement.body = self.block(statement.body, bound, loop)

    def _touched(self, statement: ast.stmt) -> bool:
        return not self._left_out.isdisjoint(range(statement.lineno, (statement.end_lineno or 0) + 1))

    def _fits(self, statement: ast.stmt, bound: set[str]) -> bool:
        """Return whether a statement can be a part of a segment."""
        if self._touched(statement) or _adds_number(statement) or any(map(_barred, ast.walk(statement))):
            return False
        written, read = writes(statement), reads(statement)
        surely = surely_written([statement])
        inside = {name for name in written if self._reads[name] == read[name]}
        return (
            self._cells.isdisjoint(written | read.keys())
            and self._outer.isdisjoint(written)
            and needs([statement]) & self._locals <= bound
            and written - surely - bound <= inside
        )

    def _fits_result(self, statement: ast.Return, bound: set[str]) -> bool:
        if statement.value is None:
            return False
        return self._fits(ast.copy_location(ast.Expr(statement.value), statement), bound)

    def _segment(self, run: list[ast.stmt], bound: set[str], loop: bool) -> list[ast.stmt]:
        """Return a run of statements, or the call of a segment of them."""
        first = next((place for place, each in enumerate(run) if not _trivial(each)), len(run))
        last = next((place for place in range(len(run), first, -1) if not _trivial(run[place - 1])), first)
        middle = run[first:last]
        if not any(_works(each) for statement in middle for each in ast.walk(statement)):
            return run
        bound = bound | surely_written(run[:first])
        given, written = needs(middle) & self._locals, set[str]().union(*map(writes, middle))
        inside = sum(map(reads, middle), Counter[str]())
        wanted = {name for name in written if self._reads[name] > inside[name] or (loop and name in given)}
        given |= wanted - surely_written(middle)
        results = None if isinstance(middle[-1], ast.Return) else tuple(sorted(wanted))
        segment = Segment(middle, tuple(sorted(given)), results, self._safe(wanted, middle))
        self.found.append(segment)
        return [*run[:first], segment.call(name_of(len(self.found) - 1)), *run[last:]]

    def _safe(self, names: set[str], statements: Sequence[ast.stmt]) -> frozenset[str]:
        """Return the names of which nothing outside of some statements makes a graph."""
        inside = {id(each) for statement in statements for each in ast.walk(statement)}
        harmless = Counter[str]()
        for each in ast.walk(self._tree):
            if id(each) not in inside:
                harmless.update([used.id for used in _harmless(each) if isinstance(used, ast.Name)])
        outside = self._reads.copy()
        outside.subtract(sum(map(reads, statements), Counter[str]()))
        return frozenset([name for name in names if outside[name] <= harmless[name]])


def name_of(place: int) -> str:
    """Return the variable that has the compiled function of a segment."""
    return f"_segment_{place}_of_this"


def declared(tree: ast.AST) -> frozenset[str]:
    """Return the variables of a function that it says to be those around it."""
    return frozenset(
        name for each in ast.walk(tree) if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names
    )


def _returned(names: Sequence[str]) -> str:
    return f"return ({', '.join(names)},)" if names else "return"


def _move(tree: ast.AST, line: int) -> None:
    places: list[Any] = [each for each in ast.walk(tree) if hasattr(each, "lineno")]
    for each in places:
        each.lineno = each.end_lineno = line
        each.col_offset = each.end_col_offset = 0


def _trivial(statement: ast.stmt) -> bool:
    """Return whether a statement only gives an object another name, or does nothing."""
    value: Any = getattr(statement, "value", None)
    plain = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)) and value is not None
    return isinstance(statement, ast.Pass) or (plain and all(isinstance(each, _TRIVIAL) for each in ast.walk(value)))


def _works(each: ast.AST) -> bool:
    """Return whether something is a call that a segment may be worth."""
    return isinstance(each, ast.Call) and getattr(each.func, "attr", "") not in _QUICK


def _barred(each: ast.AST) -> bool:
    return isinstance(each, _BARRED) or type(each).__name__ in ("Match", "TryStar")


def _adds_number(statement: ast.stmt) -> bool:
    """Return whether a number that is read of a tensor is added to a variable, which is another number in each call then."""
    added = isinstance(statement, ast.AugAssign)
    return added and any(isinstance(each, ast.Attribute) and each.attr == "item" for each in ast.walk(statement))


def _harmless(each: ast.AST) -> Sequence[Any]:
    """Return the parts of an expression or statement from which it makes no graph."""
    if isinstance(each, ast.Attribute):
        return [each.value] if each.attr in _HARMLESS else []
    if isinstance(each, ast.Compare):
        return [each.left, *each.comparators]
    if isinstance(each, ast.Call):
        return each.args if getattr(each.func, "id", "") in _READERS else []
    if isinstance(each, ast.Return):
        return each.value.elts if isinstance(each.value, ast.Tuple) else [each.value]
    return [each.value] if isinstance(each, ast.FormattedValue) else []
