"""``operation``: the declaration of an operation, written once, above the function that computes it.

An operation can be intercepted (``interception``), accepts NumPy's names of arguments and ``out=``, and its errors name it
and its arguments. The keywords of its declaration say where users find it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, overload

from ...interception import NOT_TAKEN, active, offer
from .call_errors import FAILURES, explained
from .in_place import inplace, write_out
from .registry import FUNCTIONS, OPERATIONS, attach

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
Keeps = Literal["keep", "overwrite", "keep_for_other"]

# Python's operators that have a reflected form, as __radd__.
_REFLECTED = frozenset(
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
)
# NumPy's names of arguments are accepted too, as in PyTorch.
_ALIASES = {"axis": "dim", "keepdims": "keepdim"}


class Declaration(TypedDict, total=False):
    """Declaration of an operation: the keywords of ``operation``, ``unary``, ``binary`` and ``comparison``.

    Attributes:
        function: whether it is a function of ``telegrad``; a string, as "linalg.norm", makes it a function of that
            namespace under that name. By default it is a function of ``telegrad`` if it is a method.
        method: whether it is a method of tensors; a string is the method's name.
        in_place: whether it has an in-place form, as ``add_``. "keep" is for gradient rules that use the input, which is
            then copied before it is overwritten; "overwrite" for other rules; "keep_for_other" for rules that use it only
            if the other operand requires grad. ``True`` is "keep"; ``unary`` and ``binary`` find out from their rules.
        ufunc: function of NumPy that computes the in-place form directly in the memory of the tensor.
        operator: Python's operator that it computes: "add" is ``+``, reflected too, and ``+=`` by the in-place form.
        operator_function: function that computes the operator, if it is not the operation itself.
        property: name of a property of tensors.
        synonyms: other names: of the function, method and in-place form ("clip"), or of a function of a namespace
            ("special.psi").
        dtype_of_out: whether ``out`` decides the dtype that it computes in, where none is given.
    """

    function: bool | str
    method: bool | str
    in_place: bool | Keeps
    ufunc: Callable[..., Any]
    operator: str
    operator_function: Callable[..., Any]
    property: str
    synonyms: tuple[str, ...]
    dtype_of_out: bool


@overload
def operation(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def operation(**declaration: Unpack[Declaration]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def operation(function: Any = None, /, **declaration: Unpack[Declaration]) -> Any:
    """Decorate a function on tensors that is written by hand; the functions of ``factories`` make the others.

    The operation accepts NumPy's ``axis`` and ``keepdims`` for ``dim`` and ``keepdim``. An argument ``out`` never reaches
    the function: the decorator writes the result to it.
    """
    if function is None:
        return lambda function: published(**declaration)(_operation(function, declaration))
    return _operation(function, {})


def _operation(function: Callable[P, R], declaration: Declaration) -> Callable[P, R]:
    path = declaration.get("function")
    name = path if isinstance(path, str) else function.__name__
    # Not `inspect.signature`: for all operations it would take a sixth of the time in which the package is imported.
    code = inspect.unwrap(function).__code__
    named = code.co_argcount + code.co_kwonlyargcount
    takes_out, typed_by_out = "out" in code.co_varnames[:named], declaration.get("dtype_of_out", False)
    # ``flip(x, dims=(0, 1))`` means ``flip(x, 0, 1)``: a parameter with a star can be given by its name as well.
    gathered = code.co_varnames[named] if code.co_flags & inspect.CO_VARARGS else None

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if active and (taken := offer(call, args, kwargs)) is not NOT_TAKEN:
            return taken
        out: Any = None
        if kwargs:
            if not kwargs.keys().isdisjoint(_ALIASES):
                kwargs = {_ALIASES.get(key, key): value for key, value in kwargs.items()}  # type: ignore[assignment]
            if gathered and gathered in kwargs:
                args = (*args, kwargs.pop(gathered))  # type: ignore[assignment]
            out = kwargs.pop("out", None) if takes_out else None
            if typed_by_out and out is not None and kwargs.get("dtype") is None:
                kwargs["dtype"] = out.dtype
        try:
            result = function(*args, **kwargs)
            return result if out is None else write_out(name, result, out)
        except FAILURES as error:
            raise explained(error, name, args, kwargs if out is None else {**kwargs, "out": out}) from None

    OPERATIONS[function.__name__] = call
    return call


def published(**declaration: Unpack[Declaration]) -> Callable[[F], F]:
    """Decorate a public function that is not itself an operation, because it has no array computation of its own."""

    def publish(function: F) -> F:
        _publish(function, **declaration)
        return function

    return publish


def _publish(
    operation: Callable[..., Any],
    *,
    function: bool | str | None = None,
    method: bool | str = False,
    in_place: bool | str = False,
    ufunc: Callable[..., Any] | None = None,
    operator: str = "",
    operator_function: Callable[..., Any] | None = None,
    property: str = "",
    synonyms: tuple[str, ...] = (),
    dtype_of_out: bool = False,  # of the call, not of the name
) -> None:
    name = operation.__name__
    function = bool(method) if function is None else function
    changing = inplace(operation, ufunc, keeps="keep" if in_place is True else in_place) if in_place else None
    for synonym in (None, *synonyms):
        if synonym is not None and "." in synonym:
            FUNCTIONS[synonym] = operation
            continue
        if function:
            FUNCTIONS[synonym or (name if function is True else function)] = operation
        if method:
            attach(synonym or (name if method is True else method), operation, operation, "method")
        if changing is not None:
            attach(f"{synonym or name}_", changing, operation, "in_place")
    if property:
        attach(property, operation, operation, "property")
    if operator:
        _serve(operator, operator_function or operation, changing)


def _serve(operator: str, operation: Callable[..., Any], changing: Callable[..., Any] | None) -> None:
    """Make ``operation`` compute an operator of Python and its reflected form, and ``changing`` its in-place form."""
    attach(f"__{operator}__", operation, operation, "operator")
    if operator in _REFLECTED:
        attach(f"__r{operator}__", lambda self, other: operation(other, self), operation, "operator")
        if changing is not None:
            attach(f"__i{operator}__", changing, operation, "operator")
