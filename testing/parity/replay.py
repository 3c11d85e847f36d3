"""Replay of a case with this library, and comparison of its results with the peer's."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import telegrad as tg

from .compare import difference
from .left_out import INDICES_OF_EQUALS
from .unpacking import Missing, Place, filled, found, leaves_of, tensor_of, unpickled

SECONDS = 20

# Their gradients are compared by shape and dtype only: each library rounds at other places.
HALVES = "float16", "bfloat16"

# (verdict, detail); verdicts are in the order of ``report.VERDICTS``
Outcome = tuple[str, str]
AGREES: Outcome = ("agrees", "")


class TooSlow(Exception):
    """A case took longer than ``SECONDS``."""


def replayed(message: dict[str, Any]) -> Outcome:
    """Return the outcome of one case."""
    kinds: dict[str, Callable[[dict[str, Any]], Outcome]] = {
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


def _operation(message: dict[str, Any]) -> Outcome:
    inputs = [tensor_of(data) for data in message["leaves"]]
    values: dict[Place, Any] = {Place("leaf", number): leaf for number, leaf in enumerate(inputs)}
    program = unpickled(message["program"])
    functions = [found(name) for name, _, _ in program]
    if "error" in message:
        return _error(functions[0], filled(program[0][1], values), filled(program[0][2], values), message["error"])
    tg.manual_seed(1)
    result: Any = None
    for number, (function, (_, args, kwargs)) in enumerate(zip(functions, program)):
        result = function(*filled(args, values), **filled(kwargs, values))
        values[Place("result", number)] = result
    if message["output"] is not None:
        result = filled(unpickled(message["output"]), values)
    return _judged(message, leaves_of(result), inputs)


def _error(function: Any, args: Any, kwargs: Any, expected: tuple[list[str], str]) -> Outcome:
    names, text = expected
    try:
        function(*args, **kwargs)
    except Exception as error:
        ours = {kind.__name__ for kind in type(error).__mro__}
        return AGREES if names[0] in ours else ("other error", f"{type(error).__name__}, not {names[0]}: {error}"[:300])
    return "silent", f"no {names[0]}: {text}"


def _undetermined(message: dict[str, Any], number: int) -> bool:
    # Integers and halves of a sample have equal ones among them.
    return message["entry"] in INDICES_OF_EQUALS and number == 1 and not message["note"].startswith("float64")


def _judged(message: dict[str, Any], results: list[Any], inputs: list[tg.Tensor]) -> Outcome:
    expected = message["values"]
    if len(results) != len(expected):
        return "wrong", f"{len(results)} results, not {len(expected)}"
    for number, (ours, theirs) in enumerate(zip(results, expected)):
        if text := difference(ours, theirs, message["shapes_only"] or _undetermined(message, number)):
            return "wrong", f"result {number}: {text}"
    outputs: list[Any] = [value for value in results if isinstance(value, tg.Tensor)]
    wanted = [leaf for leaf in inputs if leaf.requires_grad]
    for order in (1, 2):
        if f"order{order}" not in message:
            break
        places, weights, grads = message[f"order{order}"]
        used = [(outputs[place], tensor_of(weight)) for place, weight in zip(places, weights)]
        used = [(value, weight) for value, weight in used if value is not None and value.requires_grad]
        outputs = [None] * len(wanted)  # a result that is not recorded is constant: its gradient is zero
        if used:
            outputs = _derived(used, wanted, f"order{order + 1}" in message)
        for number, (grad, theirs) in enumerate(zip(outputs, grads)):
            if text := _gradient(grad, theirs):
                return "wrong", f"gradient {number} of order {order}: {text}"
    return AGREES


def _derived(outputs: list[Any], wanted: list[tg.Tensor], again: bool) -> list[Any]:
    values, weights = zip(*outputs)
    return list(tg.autograd.grad(values, wanted, weights, allow_unused=True, create_graph=again))


def _gradient(ours: Any, expected: Any) -> str | None:
    if ours is None or expected is None:  # none and zeros mean the same
        one = expected[2] if ours is None and expected is not None else None if ours is None else ours.detach().numpy()
        return "none" if one is not None and one.any() else None
    return difference(ours, expected, expected[1] in HALVES)


def _module(message: dict[str, Any]) -> Outcome:
    name, args, kwargs = unpickled(message["constructor"])
    module = found(name)(*args, **kwargs)
    inputs = [tensor_of(data) for data in message["leaves"]]
    values = {Place("leaf", number): leaf for number, leaf in enumerate(inputs)}
    forward_args, forward_kwargs = filled(unpickled(message["forward"]), values)
    state = {key: tensor_of(data) for key, data in message["state"].items()}
    for value in state.values():
        if value.dtype.kind in "fc":
            module = module.to(value.dtype)
            break
    module.train(message["training"]).load_state_dict(state)
    result = leaves_of(module(*forward_args, **forward_kwargs))
    ours = module.state_dict()
    if list(ours) != list(message["state_after"]):
        return "wrong", f"state {list(ours)}, not {list(message['state_after'])}"
    if not message["shapes_only"]:
        for key, theirs in message["state_after"].items():
            if text := difference(ours[key], theirs):
                return "wrong", f"state {key}: {text}"
    return _judged(message, result, [*inputs, *module.parameters()])


def _optimizer(message: dict[str, Any]) -> Outcome:
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
    for parameter in parameters:
        parameter.grad = None
    loss = tg.zeros((), dtype=tg.float64)
    for parameter in parameters:
        loss = loss + ((parameter.abs() - 1) ** 2).sum()
    loss.backward()
    return loss
