"""Replay of a case with this library, and comparison of its results with the peer's."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import telegrad as tg

from .compare import difference
from .judging import AGREES, Message, Outcome, judged
from .unpacking import Missing, Place, filled, found, leaves_of, tensor_of, unpickled

SECONDS = 20


class TooSlow(Exception):
    """A case took longer than ``SECONDS``."""


def replayed(message: Message) -> Outcome:
    """Return the outcome of one case."""
    kinds: dict[str, Callable[[Message], Outcome]] = {
        "operation": _operation,
        "module": _module,
        "optimizer": _optimizer,
    }
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kinds[message["kind"]](message)
    except Missing as missing:
        return "lacks a form" if message["note"].startswith("form:") else "missing", f"no {missing}"
    except Exception as error:
        return "raises", f"{type(error).__name__}: {error}"[:300]


@contextmanager
def _limited() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TooSlow(f"longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _operation(message: Message) -> Outcome:
    return _error(message) if "error" in message else judged(message, _results)


def _results(message: Message) -> tuple[list[Any], list[tg.Tensor]]:
    inputs = [tensor_of(data) for data in message["leaves"]]
    values: dict[Place, Any] = {Place("leaf", number): leaf for number, leaf in enumerate(inputs)}
    program = unpickled(message["program"])
    functions = [found(name) for name, _, _ in program]
    tg.manual_seed(1)
    result: Any = None
    for number, (function, (_, args, kwargs)) in enumerate(zip(functions, program)):
        result = function(*filled(args, values), **filled(kwargs, values))
        values[Place("result", number)] = result
    if message.get("output") is not None:
        result = filled(unpickled(message["output"]), values)
    return leaves_of(result), inputs


def _error(message: Message) -> Outcome:
    names, text = message["error"]
    try:
        _results(message)
    except Missing:
        raise
    except Exception as error:
        ours = {kind.__name__ for kind in type(error).__mro__}
        return AGREES if names[0] in ours else ("other error", f"{type(error).__name__}, not {names[0]}: {error}"[:300])
    return "silent", f"no {names[0]}: {text}"


def _module(message: Message) -> Outcome:
    keys, after = list(_built(message).state_dict()), message["state_after"]
    if keys != list(after):
        return "wrong", f"state {keys}, not {list(after)}"
    return judged({**message, "values": [*message["values"], *after.values()]}, _module_results)


def _module_results(message: Message) -> tuple[list[Any], list[tg.Tensor]]:
    """Return the module's results and its state afterwards; its inputs and parameters."""
    module = _built(message)
    inputs = [tensor_of(data) for data in message["leaves"]]
    args, kwargs = filled(
        unpickled(message["forward"]), {Place("leaf", number): leaf for number, leaf in enumerate(inputs)}
    )
    result = leaves_of(module(*args, **kwargs))
    return [*result, *module.state_dict().values()], [*inputs, *module.parameters()]


def _built(message: Message) -> Any:
    name, args, kwargs = unpickled(message["constructor"])
    module = found(name)(*args, **kwargs)
    state = {key: tensor_of(data) for key, data in message["state"].items()}
    for value in state.values():
        if value.dtype.kind in "fc":
            module = module.to(value.dtype)
            break
    module.train(message["training"]).load_state_dict(state)
    return module


def _optimizer(message: Message) -> Outcome:
    parameters = [tensor_of(data) for data in message["leaves"]]
    name, options = unpickled(message["options"])
    optimizer = found(name)(parameters, **options)
    for number, (grads, after) in enumerate(zip(message["gradients"], message["after"])):
        for parameter, grad in zip(parameters, grads):
            value = tensor_of(grad)
            parameter.grad = value.to_sparse() if name == "torch.optim.SparseAdam" else value
        if message["closure"]:
            optimizer.step(lambda: _loss(parameters))
        else:
            optimizer.step()
        for place, (parameter, theirs) in enumerate(zip(parameters, after)):
            if text := difference(parameter.detach(), theirs):
                return "wrong", f"parameter {place} after step {number}: {text}"
    state = optimizer.state_dict()["state"]
    keys = sorted(state[0]) if 0 in state else []
    return AGREES if keys == message["state_keys"] else ("wrong", f"state {keys}, not {message['state_keys']}")


def _loss(parameters: list[tg.Tensor]) -> tg.Tensor:
    # The same as the peer's.
    loss = tg.zeros((), dtype=tg.float64)
    for number, parameter in enumerate(parameters):
        parameter.grad = None
        size = (parameter - 0.5).abs()
        loss = loss + (size**4 + (number + 1) * size**2).sum()
    loss.backward()
    return loss
