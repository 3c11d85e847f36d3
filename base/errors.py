"""The errors that Telegrad raises, under one base class.

The RPC errors are also ``RuntimeError`` because programs written for PyTorch catch that, and also the
built-in exception of the same meaning (``TimeoutError``, ``ConnectionError``, ...), because careful programs
catch those. A message says what happened, to whom, and what to do about it.
"""

from __future__ import annotations

from concurrent.futures import CancelledError
from functools import cache
from types import WrapperDescriptorType
from typing import Any


class TelegradError(Exception):
    """The base class of all errors that the library raises."""


class AutogradError(TelegradError, RuntimeError):
    """The graph cannot be differentiated as asked: freed, modified in place, no gradient required, ..."""


class PassStoppedError(AutogradError):
    """A backward pass was stopped on this worker because it failed on another one, whose error is on its way."""


class ArgumentError(TelegradError, RuntimeError):
    """An operation was called with wrong arguments: the message names the operation, its arguments, and what fits.

    Each subclass is also the built-in error of the same meaning, and a ``RuntimeError`` as PyTorch's are.
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type or dtype."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument has the wrong shape or value."""


class ArgumentKindError(ArgumentTypeError, ValueError):
    """An argument is of another kind than any that fits: a type that PyTorch names a wrong value in some places."""


class ArgumentIndexError(ArgumentError, IndexError):
    """An index or a dimension is out of range."""


class ArgumentDivisionError(ArgumentError, ZeroDivisionError):
    """Integers were divided by 0."""


class CheckpointError(TelegradError, RuntimeError):
    """A file is not a checkpoint that ``load`` reads: it was cut off, altered, made to do harm, or is of another kind."""


class RpcError(TelegradError, RuntimeError):
    """A remote call, reference or context failed for a reason outside the called function."""


class RpcTimeoutError(RpcError, TimeoutError):
    """The deadline passed before the answer came."""


class RpcCancelledError(RpcError, CancelledError):
    """The call, or the future, was cancelled: nobody waits for its value any more."""


class _WorkerConnectionError(RpcError, ConnectionError):
    def __init__(self, message: str, worker: str = "") -> None:
        super().__init__(message)
        self.worker = worker

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.worker))


class WorkerLostError(_WorkerConnectionError):
    """The worker that should answer is lost for good: it died, fell silent, or was replaced.

    ``worker`` is its name.
    """


class LinkCutError(_WorkerConnectionError):
    """The link to the worker that should answer is cut, and the worker stays in the job: calls work when the link is back.

    ``worker`` is its name.
    """


class UnknownWorkerError(RpcError, LookupError):
    """No worker of the job has that name or rank."""


class RemoteError(RpcError):
    """An exception of the callee that cannot be rebuilt here; the message holds its type, text and traceback."""


class SerializationError(RpcError, TypeError):
    """Something in an argument or a result cannot travel; the message names where it sits."""


class MemoryBudgetError(RpcError, MemoryError):
    """A worker has no room, in memory or in its file, for arrays that arrived or that it is to keep; it says for how much."""


class AuthenticationError(RpcError, PermissionError):
    """A peer could not prove that it belongs to this job."""


class ContextTypeError(AutogradError, RpcError, TypeError):
    """An argument of distributed autograd, the context or the roots, has the wrong type."""


class AgentClosedError(RpcError):
    """The agent that this handle belongs to was shut down, never started, or lives in another process."""


class RendezvousError(RpcError):
    """The workers could not find one another: wrong rank or world size, a name used twice, no server, ..."""


class CollectiveError(TelegradError, RuntimeError):
    """The ranks of a process group called different collectives, or the group cannot be used."""


class CollectiveTimeoutError(CollectiveError, TimeoutError):
    """Some ranks of a process group did not call a collective in time; the message names them where that is known."""


class IllegalEventError(TelegradError, RuntimeError):
    """A protocol's state machine got an event that its state does not allow: a defect of telegrad, or of a peer."""


def as_runtime_error(error: Exception) -> Exception:
    """Return an error that is also a ``RuntimeError``, as PyTorch's is in that place, and otherwise the same.

    Its class has the name of the error's own class, and is a subclass of it, so clauses of both kinds catch it. A plain
    ``Exception`` becomes a plain ``RuntimeError``, which is one.
    """
    if isinstance(error, RuntimeError):
        return error
    try:
        kind = RuntimeError if type(error) is Exception else _both(type(error))  # type: ignore[arg-type]  # it is hashable
        both: Exception = _remade(error, kind)
        return both
    except Exception:  # its class allows no subclass, or no such copy
        return error


def original_error(error: BaseException) -> BaseException:
    """Return the error that ``as_runtime_error`` returned another form of, or ``error`` itself."""
    if not isinstance(error, _Both):
        return error
    original: BaseException = _remade(error, type(error).__mro__[1])
    return original


class _Both:
    """Mark of the classes that ``as_runtime_error`` makes. They have no module of their own, so the original is pickled."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return as_runtime_error, (original_error(self),)  # type: ignore[arg-type]


@cache
def _both(kind: type[Exception]) -> type[Exception]:
    return type(
        kind.__name__, (kind, RuntimeError, _Both), {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    )


def _remade(error: Any, kind: Any) -> Any:
    # Not by its constructor, which may take other arguments; those of built-in classes take what their __reduce__ gives.
    built_in: Any = next(
        each for each in type(error).__mro__ if each.__module__ == "builtins" and each is not RuntimeError
    )
    _, args, *_ = built_in.__reduce__(error)
    other = kind.__new__(kind, *args)
    if isinstance(kind.__init__, WrapperDescriptorType):
        other.__init__(*args)
    other.args = error.args
    other.__dict__.update(error.__dict__)
    other.__cause__, other.__context__ = error.__cause__, error.__context__
    other.__suppress_context__ = error.__suppress_context__
    return other.with_traceback(error.__traceback__)
