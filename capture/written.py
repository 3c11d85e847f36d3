"""``Written``: a function of Python as it is written, and functions made of changed copies of it."""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from .errors import Unrecordable

_FEATURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_OUTER = "enclosing"


class Written:
    """A function, and the tree of its source.

    Args:
        function: a function, or a bound method.

    Attributes:
        tree: its definition; the lines are those of its file.
        code: its code.

    Raises:
        Unrecordable: there is no source, or it is not that of the function.
    """

    def __init__(self, function: Any) -> None:
        self._owner = function.__self__ if isinstance(function, MethodType) else None
        plain = function.__func__ if isinstance(function, MethodType) else function
        if not isinstance(plain, FunctionType):
            raise Unrecordable("it is no function of Python")
        self._function, self.code = plain, plain.__code__
        self._cells = dict(zip(self.code.co_freevars, plain.__closure__ or ()))
        self.tree = self._read()
        self._imported = _imported(self.code.co_filename)
        if not _same(self._compiled(self.tree, {}), self.code):
            raise Unrecordable("its source is not what was compiled")

    def _read(self) -> ast.FunctionDef:
        try:
            module = ast.parse(textwrap.dedent(inspect.getsource(self.code)))
        except (OSError, TypeError, SyntaxError, IndentationError) as error:
            raise Unrecordable("there is no source") from error
        (tree, *others) = module.body
        if others or not isinstance(tree, ast.FunctionDef):
            raise Unrecordable("it is no function with a name")
        tree.decorator_list = []
        ast.increment_lineno(tree, self.code.co_firstlineno - 1)
        return tree

    def made(self, tree: ast.FunctionDef, more: Mapping[str, Any] = {}, bound: bool = True) -> Callable[..., Any]:
        """Return a function that has the variables around this one.

        Args:
            tree: its definition.
            more: further variables around it, with their values.
            bound: whether it has this one's default values, and is a method where this one is.
        """
        code = self._compiled(tree, more)
        cells = {**self._cells, **{name: CellType(value) for name, value in more.items()}}
        former = self._function
        closure = tuple([cells[name] for name in code.co_freevars])
        made = FunctionType(code, former.__globals__, tree.name, former.__defaults__ if bound else None, closure)
        made.__module__ = former.__module__
        if bound:
            made.__kwdefaults__, made.__doc__ = former.__kwdefaults__, former.__doc__
        return MethodType(made, self._owner) if bound and self._owner is not None else made

    def _compiled(self, tree: ast.FunctionDef, more: Mapping[str, Any]) -> CodeType:
        names = [*self._cells, *more]
        # Python compiles calls of methods in another way where it knows that an object is a module.
        imports = [f"import {name}" for name in self._imported]
        lines = [*imports, f"def {_OUTER}():", *[f"    {name} = None" for name in names], "    pass"]
        module = ast.parse("\n".join(lines))
        outer: Any = module.body[-1]
        outer.body.append(tree)
        ast.fix_missing_locations(module)
        code = compile(module, self.code.co_filename, "exec", self.code.co_flags & _FEATURES, dont_inherit=True)
        inner = next(each for each in code.co_consts if isinstance(each, CodeType))
        return next(each for each in inner.co_consts if isinstance(each, CodeType) and each.co_name == tree.name)


def _imported(path: str) -> list[str]:
    """Return the names that a module imports outside of functions."""
    found: list[str] = []

    def search(tree: ast.AST) -> None:
        if isinstance(tree, (ast.Import, ast.ImportFrom)):
            found.extend((each.asname or each.name).partition(".")[0] for each in tree.names if each.name != "*")
        elif not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            for each in ast.iter_child_nodes(tree):
                search(each)

    try:
        search(ast.parse("".join(linecache.getlines(path))))
    except SyntaxError:  # lines of an interactive session, or of a notebook's cell
        return []
    return found


def _same(one: Any, other: Any) -> bool:
    """Return whether two codes, or two constants, do the same."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and repr(one) == repr(other)
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount")
    alike = all(getattr(one, name) == getattr(other, name) for name in names)
    constants = len(one.co_consts) == len(other.co_consts)
    return alike and constants and all(map(_same, one.co_consts, other.co_consts))
