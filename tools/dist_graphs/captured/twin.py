"""``Twin``: one of two runs of a random step, with parameters of its own at all workers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

from .... import core as tg
from ....autograd_dist import DistributedOptimizer, backward, context
from ....core.extend import Tensor
from ....optim import SGD, Adam
from ....rpc import remote, rpc_async, rpc_sync
from ....rref import RemoteModule, RRef
from . import layers
from .layers import COLUMNS
from .program import RemoteCall, StepProgram

OPTIMIZERS: dict[str, tuple[type[Any], dict[str, float]]] = {
    "SGD": (SGD, {"lr": 0.05}),
    "momentum": (SGD, {"lr": 0.05, "momentum": 0.9}),
    "Adam": (Adam, {"lr": 0.01}),
}
OWN = -1  # number of the caller's layers


class Twin:
    """One run of a random step.

    Args:
        program: the step.
        name: of the twin.
    """

    def __init__(self, program: StepProgram, name: str) -> None:
        self.program, self.name = program, name
        self.first = layers.make_layers(self.key(OWN), program.own)
        self.remote = [
            rpc_sync(at, layers.lend_layers, (self.key(number), names))
            for number, (at, names) in enumerate(program.layers)
        ]
        for number, call in enumerate(program.calls):
            self._lead_on(number, [number, *program.onward(number)], call.fork)
        self.modules = [
            RemoteModule.init_from_module_rref(f"w{call.at}", reference)
            for call, reference in zip(program.calls, self.remote)
        ]
        references = [
            each
            for number, (at, _) in enumerate(program.layers)
            for each in rpc_sync(at, layers.references_of, (self.key(number),))
        ]
        own = [RRef(each) for each in self.first.parameters()]
        kind, options = OPTIMIZERS[program.optimizer]
        chosen = {"all": [*references, *own], "callees": references, "own": own}[program.owners]
        self.optimizer: Any = DistributedOptimizer(kind, chosen, **cast(Any, options))

    def _lead_on(self, number: int, chain: list[int], fork: bool) -> None:
        """Let the layers of a chain call the next one, or the first one all others."""
        pairs = [(number, chain[1:])] if fork else [(one, [other]) for one, other in pairwise(chain)]
        for caller, others in pairs:
            at, _ = self.program.layers[caller]
            rpc_sync(at, layers.lead_on, (self.key(caller), [self.remote[each] for each in others]))

    def key(self, number: int) -> layers.Key:
        """Return the key of the layers of a call."""
        return self.program.seed, self.name, number

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Make one step, and return its loss."""
        program = self.program
        with context() as context_id:
            h = self.first.forward(x)
            for numbers in program.groups:
                h = functools.reduce(operator.add, [self._call(number, h) for number in numbers])
            loss = ((h - y) ** 2).mean()
            for done in range(1, program.passes + 1):
                backward(context_id, [loss], done < program.passes)
            self.optimizer.step(context_id)
        return loss.detach()

    def _call(self, number: int, x: Tensor) -> Any:
        call = self.program.calls[number]
        result = WAYS[call.way](self, number, call, x)
        return result + x if call.skip else result

    def outcome(self, step: Callable[..., Tensor], number: int) -> str:
        """Make a step, and return its loss, or its error's name.

        Args:
            step: the method of this twin, or what was compiled of it.
            number: of the step.
        """
        program = self.program
        rng = tg.Generator().manual_seed(1000 * program.seed + number)
        x = tg.randn(program.rows[number], COLUMNS, generator=rng)
        y = tg.randn(program.rows[number], COLUMNS, generator=rng)
        if program.draws:
            for rank in {0, *(at for at, _ in program.layers)}:
                rpc_sync(rank, layers.draw_from, (number,))
        try:
            return step(x, y).item().hex()
        except Exception as error:
            return type(error).__name__

    def digests(self) -> list[str]:
        """Return what is equal if all parameters are."""
        return [rpc_sync(self._owner(number), layers.digest_of, (self.key(number),)) for number in self._numbers()]

    def change(self, number: int, name: str) -> None:
        """Change the layers of a call (``change_layers``)."""
        rpc_sync(self._owner(number), layers.change_layers, (self.key(number), name))

    def close(self) -> None:
        """Forget the layers."""
        for number in self._numbers():
            rpc_sync(self._owner(number), layers.drop_layers, (self.key(number),))

    def _numbers(self) -> range:
        return range(OWN, len(self.program.layers))

    def _owner(self, number: int) -> int:
        return 0 if number == OWN else self.program.layers[number][0]


Way = Callable[[Twin, int, RemoteCall, Tensor], Any]


def _two(twin: Twin, number: int, call: RemoteCall, x: Tensor) -> Tensor:
    result, sums = twin.remote[number].rpc_sync().two(x)
    return result * sums.unsqueeze(1)


def _function(twin: Twin, number: int, call: RemoteCall, x: Tensor) -> Any:
    return rpc_sync(call.at, layers.forward_there, (*twin.key(number), x))


def _function_future(twin: Twin, number: int, call: RemoteCall, x: Tensor) -> Any:
    return rpc_async(call.at, layers.forward_there, (*twin.key(number), x)).wait()


def _reference(twin: Twin, number: int, call: RemoteCall, x: Tensor) -> Any:
    return remote(call.at, layers.forward_there, (*twin.key(number), x)).to_here()


def _promise(twin: Twin, number: int, call: RemoteCall, x: Tensor) -> Any:
    return rpc_sync(call.at, layers.promise_there, (*twin.key(number), x, call.to))


WAYS: dict[str, Way] = {
    "method": lambda twin, number, call, x: twin.remote[number].rpc_sync().forward(x),
    "module": lambda twin, number, call, x: twin.modules[number](x),
    "future": lambda twin, number, call, x: twin.remote[number].rpc_async().forward(x).wait(),
    "deep": lambda twin, number, call, x: twin.remote[number].rpc_sync().deep(x),
    "nested": lambda twin, number, call, x: twin.remote[number].rpc_sync().nested(x, call.to),
    "counted": lambda twin, number, call, x: twin.remote[number].rpc_sync().counted(x),
    "looks": lambda twin, number, call, x: twin.remote[number].rpc_sync().looks(x),
    "two results": _two,
    "function": _function,
    "function's future": _function_future,
    "reference": _reference,
    "promise": _promise,
}
