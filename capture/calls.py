"""Calls beside operations that a recording must know of: seen by a profile function of the thread, only while it records.

A profile function hears of each call, so programs that record nothing pay nothing: no function of the library asks whether
there is a recording.
"""

from __future__ import annotations

import datetime
import io
import random
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from types import CodeType, FrameType
from typing import Any

from .. import nn, optim
from ..amp import GradScaler
from ..core import autograd
from ..core.extend import Generator, Tensor, memory_address
from ..core.futures import Future, wait_all
from ..nn.extend import clip_norm, clip_values
from .crossings import MAKER, MAKERS
from .errors import Unrecordable
from .leaving import only_leaves
from .lines import is_outermost
from .looks import READERS
from .objects import is_ours
from .recorder import Recorder
from .state import State
from .trees import tensors_of

PACKAGE = __name__.rpartition(".capture")[0]
# Packages whose functions send something to other workers, or get something from there.
_ELSEWHERE = ("agents", "autograd_dist", "collective", "launcher", "pipelining", "rpc", "rref")

_READS = frozenset(
    [
        "numpy",
        "__complex__",
        "__contains__",
        "__array__",
        "__repr__",
        "__format__",
        "__dlpack__",
        "data_ptr",
        "storage_offset",
    ]
)
_CHANGES = frozenset(
    [
        "requires_grad_",
        "retain_grad",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "detach_",
        "as_subclass",
        "share_memory_",
        "__copy__",
        "__deepcopy__",
        "__reduce_ex__",
    ]
)
_BESIDE = ("__del__", "<module>")  # run when memory is collected or a module is imported, at any moment
_SILENT: dict[Any, str] = {print: "print()", open: "open()", input: "input()"}
_USERS: dict[Any, str] = {  # asked for or done by the user's code; the library's may
    warnings.warn: "warn() would happen in no replay",
    threading.get_ident: "get_ident() tells the thread, which may be another one",
}
_OF_SYSTEM = ("posix", "nt")  # modules with the functions of ``os``
_SYSTEM_CONSTANT = frozenset(["fspath", "getpid"])
_CLOCKS = frozenset(["now", "utcnow", "today"])


def _codes(names: Iterable[str], why: str) -> dict[CodeType, str]:
    found = {}
    for name in names:
        function: Any = getattr(Tensor, name)
        if (code := getattr(function, "__code__", None)) is not None:
            found[code] = f"{name.strip('_')}() {why}"
    return found


_REASONS = {
    **_codes(_READS, "reads elements; return the tensor, and read it outside"),
    **_codes(_CHANGES, "changes a tensor in a way that is not recorded"),
    Tensor.data.fget.__code__: "data gives memory away; use detach()",  # type: ignore[attr-defined]
    Tensor.data.fset.__code__: "an assignment to data replaces a tensor's memory",  # type: ignore[attr-defined]
    autograd.grad.__code__: "autograd.grad() is not recorded; call backward()",
    memory_address.__code__: "an address is read",
    **{
        getattr(Generator, name).__code__: f"{name}() sets the state of a generator of random numbers"
        for name in ("manual_seed", "seed", "set_state")
    },
    **{
        function.__code__: f"{name}() of a GradScaler looks at gradients, or at what changes from step to step"
        for name, function in vars(GradScaler).items()
        if isinstance(function, types.FunctionType) and name not in ("__init__", "scale", "get_scale", "is_enabled")
    },
}
_GRAPHS = {*_codes(_CHANGES, ""), autograd.grad.__code__}
_ITEM = Tensor.item.__code__
_READ = Tensor.grad.fget.__code__  # type: ignore[attr-defined]
_ASSIGN = Tensor.grad.fset.__code__  # type: ignore[attr-defined]
_BACKWARD = autograd.backward.__code__
_WAITS = (Future.wait.__code__, Future.value.__code__, wait_all.__code__)
_DRAW = Generator.draw.__code__
_EFFECTS: dict[CodeType, Callable[..., Any]] = {
    optim.Optimizer.step.__code__: optim.Optimizer.step,
    optim.Optimizer.zero_grad.__code__: optim.Optimizer.zero_grad,
    nn.Module.zero_grad.__code__: nn.Module.zero_grad,
}
_CLIPPING: dict[CodeType, Callable[..., Any]] = {each.__code__: each for each in (clip_norm, clip_values)}


class Calls:
    """A ``with`` block in which a recorder hears of the calls of this thread that it must know of.

    Args:
        recorder: gets them.
        code: of the recorded function, if it is one of Python.
        state: what the function reads.
        whole: the code of a function that it is a segment of, and does not call.

    Attributes:
        change: the line of the function that has called what changed this; 0 if it was the function itself; or ``None``.
    """

    def __init__(
        self,
        recorder: Recorder,
        code: CodeType | None,
        state: State | None = None,
        whole: CodeType | None = None,
    ) -> None:
        self._recorder, self._code, self._state = recorder, code, state
        self.change: int | None = None
        self._whole = whole
        self._inside: list[FrameType] = []  # recorded calls that run
        self._known: dict[CodeType, str | None] = {}
        self._former: Any = None
        self._leaves = False  # whether the number that is read can only become a part of the result

    def __enter__(self) -> None:
        self._former = sys.getprofile()
        sys.setprofile(self._hear)

    def __exit__(self, *error: object) -> None:
        if callable(self._former) or self._former is None:
            sys.setprofile(self._former)
        else:  # a profiler written in C, as cProfile's: it is no function, and enters itself
            sys.setprofile(None)
            self._former.enable()

    def _hear(self, frame: FrameType, event: str, arg: Any) -> None:
        recorder = self._recorder
        caller = frame if event[0] == "c" and event != "call" else frame.f_back
        if caller is not None and caller.f_code is self._code and self._state is not None and self.change is None:
            self._check(caller.f_lineno if event.endswith("return") else 0)
        if event == "call":
            code = frame.f_code
            if code in _GRAPHS or (code is _BACKWARD and _unusual(frame.f_locals)):
                recorder.inspected = True
            if code is _DRAW:
                recorder.draws(frame.f_locals["self"])
            elif not recorder.depth and recorder.reason is None:
                self._hear_call(frame, code)
        elif event == "return":
            if self._inside and frame is self._inside[-1]:
                self._inside.pop()
                recorder.depth -= 1
                if recorder.crossing is not None and recorder.reason is None:
                    self._crossed(frame, arg)
                if frame.f_code is _BACKWARD:
                    recorder.backward_ended()
                self._elements_read(frame, arg)
                if frame.f_code is _READ:
                    recorder.gradient_read(frame.f_locals["self"], arg)
                if frame.f_code in _CLIPPING:
                    recorder.returned(arg)
                if _EFFECTS.get(frame.f_code) is optim.Optimizer.step:
                    recorder.changed(p for group in frame.f_locals["self"].param_groups for p in group["params"])
        elif event == "c_call" and not recorder.depth and recorder.reason is None and not _imports(frame):
            self._hear_builtin(arg, frame)

    def _check(self, line: int) -> None:
        assert self._state is not None
        if not self._state.same():
            self.change = line

    def _hear_call(self, frame: FrameType, code: CodeType) -> None:
        recorder = self._recorder
        recorder.depth += 1  # what runs here is not the program
        try:
            if code is self._whole:
                raise Unrecordable("it calls itself")
            if code.co_name in _BESIDE and _is_elsewhere(frame):
                pass
            elif code is _BACKWARD:
                self._backward(frame.f_locals)
            elif code in _WAITS and recorder.crossing is not None and self._crosses(frame):
                pass
            elif code in READERS:
                self._leaves = code is _ITEM and self._only_leaves(frame.f_back)
            elif code is _READ:
                recorder.read_gradient(frame.f_locals["self"])
            elif code is _ASSIGN:
                self._assign(frame.f_locals)
            elif code in _CLIPPING:
                recorder.outside_effect(_CLIPPING[code], tuple(frame.f_locals.values()))
            elif code in _EFFECTS:
                self._effect(_EFFECTS[code], frame.f_locals)
            else:
                if code not in self._known:
                    self._known[code] = _reason(frame)
                reason = self._known[code]
                if reason is not None and not self._crosses(frame):
                    raise Unrecordable(reason)
                if reason is None:
                    recorder.depth -= 1
                    return
        except Unrecordable as error:
            recorder.refuse(error)
        except Exception as error:  # what fails here fails again when it is called, with its own message
            recorder.stop(f"{code.co_name}() failed: {error}")
        self._inside.append(frame)

    def _crosses(self, frame: FrameType) -> bool:
        """Return whether a call that has to do with other workers can be recorded."""
        recorder = self._recorder
        if recorder.crossing is None:
            recorder.crossing = getattr(import_module(f"{PACKAGE}.{MAKERS}"), MAKER)(recorder)
        return recorder.crossing.begins(frame)

    def _crossed(self, frame: FrameType, result: Any) -> None:
        crossing, recorder = self._recorder.crossing, self._recorder
        recorder.depth += 1
        try:
            if crossing is not None:
                crossing.ended(frame, result)
        except Exception as error:
            recorder.refuse(error)
        finally:
            recorder.depth -= 1

    def _elements_read(self, frame: FrameType, value: Any) -> None:
        if (reader := READERS.get(frame.f_code)) is None:
            return
        tensor = frame.f_locals["self"]
        if self._leaves and type(value) is float:  # others may be the same object as a constant
            self._recorder.number_read(tensor, value)
        else:
            self._recorder.looked(tensor, reader, frame.f_code.co_name, value)

    def _only_leaves(self, caller: FrameType | None) -> bool:
        if caller is None or caller.f_code is not self._code:
            return False
        return is_outermost(caller) and only_leaves(caller)  # what a recursive call returns is used by the outer one

    def _backward(self, given: dict[str, Any]) -> None:
        if _unusual(given):
            raise Unrecordable("backward() with create_graph or inputs is not recorded")
        outputs, gradients = tensors_of(given["tensors"]), given["grad_tensors"]
        if gradients is None:
            gradients = [None] * len(outputs)
        elif isinstance(gradients, Tensor):
            gradients = [gradients]
        self._recorder.backward(outputs, list(gradients), bool(given["retain_graph"]))

    def _assign(self, given: dict[str, Any]) -> None:
        leaf, value = given["self"], given["value"]
        if value is None:
            self._recorder.clear(leaf)
        elif isinstance(value, Tensor) and value.shape == leaf.shape:
            self._recorder.assign(leaf, value)

    def _effect(self, function: Callable[..., Any], given: dict[str, Any]) -> None:
        owner = given["self"]
        if given.get("closure") is not None:
            raise Unrecordable("step() with a closure is not recorded")
        more = (given["set_to_none"],) if "set_to_none" in given else ()
        if more:
            gradients = self._recorder.gradients
            (gradients.clear if more[0] else gradients.touch)(*_parameters(owner))
        self._recorder.effect(function, owner, *more)

    def _hear_builtin(self, function: Any, caller: FrameType) -> None:
        recorder = self._recorder
        owner = getattr(function, "__self__", None)
        if isinstance(owner, random.Random):  # the methods that are written in C
            recorder.stop("Python's random numbers are drawn")
        elif owner is time or getattr(function, "__module__", None) == "time" or _is_date(owner, function):
            recorder.stop(f"{function.__name__}() reads the clock")
        elif isinstance(owner, io.IOBase):
            recorder.stop(f"{function.__name__}() of a file would happen in no replay")
        elif getattr(function, "__module__", None) in _OF_SYSTEM and function.__name__ not in _SYSTEM_CONSTANT:
            recorder.stop(f"{function.__name__}() asks the operating system")
        elif isinstance(function, types.BuiltinFunctionType) and function in _SILENT:
            recorder.stop(f"{_SILENT[function]} would happen in no replay")
        elif isinstance(function, types.BuiltinFunctionType) and function in _USERS and not _is_librarys(caller):
            recorder.stop(_USERS[function])


def _imports(frame: FrameType) -> bool:
    """Return whether a frame finds a module that is imported: in the first call only."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _is_librarys(frame: FrameType) -> bool:
    return is_ours(frame.f_globals.get("__name__", ""))


def _is_date(owner: Any, function: Any) -> bool:
    return isinstance(owner, type) and issubclass(owner, datetime.date) and function.__name__ in _CLOCKS


def _unusual(given: dict[str, Any]) -> bool:
    return given["create_graph"] or given["inputs"] is not None


def _parameters(owner: Any) -> Iterable[Tensor]:
    if isinstance(owner, nn.Module):
        return owner.parameters()
    return [each for group in owner.param_groups for each in group["params"]]


def _is_elsewhere(frame: FrameType) -> str:
    """Return the package about other workers whose code it is; empty if it is other code."""
    module = frame.f_globals.get("__name__", "")
    part = module[len(PACKAGE) + 1 :].partition(".")[0] if module.startswith(PACKAGE) else ""
    return part if part in _ELSEWHERE else ""


def _reason(frame: FrameType) -> str | None:
    if (package := _is_elsewhere(frame)) == "autograd_dist":
        return f"a step has a backward() and a DistributedOptimizer.step() in its autograd context, and no {_title(frame)}()"
    if package:
        return f"a step calls other workers by rpc_sync, rpc_async, and methods of references, not by {_title(frame)}()"
    return _REASONS.get(frame.f_code)


def _title(frame: FrameType) -> str:
    """Return the name of a function, with its class if it is a method."""
    code = frame.f_code
    owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount and code.co_varnames[0] == "self" else None
    names = [
        *([type(owner).__name__] if owner is not None else []),
        *([code.co_name] if code.co_name != "__init__" else []),
    ]
    return ".".join(names)
