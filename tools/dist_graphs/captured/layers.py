"""``Layers``: parameters and operations at one worker, and the functions that are called there."""

from __future__ import annotations

import functools
import hashlib
import operator
import sys
from typing import Any

from .... import core as tg
from ....autograd_dist.captured.parts import CapturedParts
from ....core.extend import Tensor
from ....core.futures import Future
from ....nn import Module, Parameter
from ....nn.functional import dropout, layer_norm
from ....rpc import functions as rpc_functions
from ....rpc import rpc_async, rpc_sync
from ....rpc.extend import current_agent
from ....rref import RRef
from ..operations import OF_LEAVES, apply

COLUMNS = 4
Key = tuple[int, str, int]  # seed, twin and number of the call
LAYERS: dict[Key, Layers] = {}


class Layers(Module):
    """Operations with a weight and a bias.

    Args:
        seed: of the parameters.
        names: of the operations.
    """

    def __init__(self, seed: int, names: tuple[str, ...]) -> None:
        super().__init__()
        generator = tg.Generator().manual_seed(seed)
        self.weight = Parameter(tg.randn(COLUMNS, COLUMNS, generator=generator) * 0.5)
        self.bias = Parameter(tg.randn(COLUMNS, generator=generator) * 0.5)
        self.names, self.factor, self.fails, self.calls = names, 1.0, False, 0
        self.onward: list[RRef[Any]] = []

    def forward(self, x: Tensor) -> Tensor:
        """Run the operations."""
        if self.fails:
            raise KeyError("told to fail")
        for name in self.names:
            x = self._one(name, x)
        return x * self.factor

    def _one(self, name: str, x: Tensor) -> Tensor:
        if name == "dropped":
            return dropout(x, 0.25)
        if name == "normalized":
            return layer_norm(x, (COLUMNS,), self.weight[0], self.bias)
        return apply(name, self.weight, x) if name in OF_LEAVES else apply(name, x, x @ self.weight.t() + self.bias)

    def nested(self, x: Tensor, to: int) -> Tensor:
        """Run the operations, and one on another worker."""
        result: Tensor = rpc_sync(to, tg.mul, (self.forward(x), 0.5))
        return result

    def deep(self, x: Tensor) -> Tensor:
        """Run the operations, and the layers of other workers on the result."""
        h = self.forward(x)
        futures = [each.rpc_async().deep(h) for each in self.onward]
        return functools.reduce(operator.add, [each.wait() for each in futures]) if futures else h

    def two(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the result of the operations, and another one."""
        return self.forward(x), (x * self.bias).sum(1)

    def counted(self, x: Tensor) -> Tensor:
        """Run the operations, and count the calls."""
        self.calls += 1
        return self.forward(x)

    def looks(self, x: Tensor) -> Tensor:
        """Run the operations, and look at an element."""
        result = self.forward(x)
        return result * 0.5 if result[0, 0].item() > 0 else result


def make_layers(key: Key, names: tuple[str, ...]) -> Layers:
    """Return new layers, which are found by their key, too."""
    seed, _, number = key
    LAYERS[key] = layers = Layers(1000 * seed + number, names)
    return layers


def lend_layers(key: Key, names: tuple[str, ...]) -> RRef[Any]:
    """Return a reference to new layers of this worker."""
    return RRef(make_layers(key, names))


def lead_on(key: Key, others: list[RRef[Any]]) -> None:
    """Let layers call others."""
    LAYERS[key].onward = others


def drop_layers(key: Key) -> None:
    """Forget layers."""
    if (layers := LAYERS.pop(key, None)) is not None:
        layers.onward = []


def forward_there(seed: int, twin: str, number: int, x: Tensor) -> Tensor:
    """Run the operations of the layers of a key."""
    return LAYERS[seed, twin, number].forward(x)


def _forward_and_more(seed: int, twin: str, number: int, x: Tensor) -> Tensor:
    return LAYERS[seed, twin, number].forward(x).tanh()


_forward_and_more.__name__ = _forward_and_more.__qualname__ = "forward_there"
FORWARDS = forward_there, _forward_and_more


@rpc_functions.async_execution
def promise_there(seed: int, twin: str, number: int, x: Tensor, to: int) -> Future[Tensor]:
    """Have another worker run an operation on the result, and hold no thread meanwhile."""
    return rpc_async(to, tg.mul, (LAYERS[seed, twin, number].forward(x), 0.5))


def references_of(key: Key) -> list[RRef[Any]]:
    """Return references to the parameters of layers."""
    return [RRef(each) for each in LAYERS[key].parameters()]


def digest_of(key: Key) -> str:
    """Return what is equal if all elements of the parameters are."""
    parameters = [*LAYERS[key].parameters()]
    return hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in parameters)).hexdigest()


def draw_from(seed: int) -> None:
    """Let random numbers begin anew."""
    tg.manual_seed(seed)


# -- changes


def change_layers(key: Key, name: str) -> None:
    """Change layers.

    Args:
        key: of the layers.
        name: of the change.
    """
    layers = LAYERS[key]
    if name == "scale":
        layers.weight.detach().mul_(0.875)
    elif name == "replace":
        layers.weight = Parameter(layers.weight.detach() * 1.125)
    elif name == "freeze":
        layers.bias.requires_grad_(not layers.bias.requires_grad)
    elif name == "fails":
        layers.fails = True
    elif name == "mended":
        layers.fails = False
    elif name == "factor":
        layers.factor = 1.5 - layers.factor
    elif name == "layers":
        layers.names = (*layers.names, "add") if len(layers.names) < 4 else layers.names[:1]


def _another_one(self: Layers, name: str, x: Tensor) -> Tensor:
    return _FIRST_ONE(self, name, x) + 0.125


_FIRST_ONE = Layers._one


def change_worker(name: str) -> None:
    """Change what all layers of this worker have in common.

    Args:
        name: of the change; "restored" for all code as it was first.
    """
    if name == "code":
        _use_code(_another_one if Layers._one is _FIRST_ONE else _FIRST_ONE)
    elif name == "function":
        _use_function(FORWARDS[forward_there is FORWARDS[0]])
    elif name == "forget":
        current_agent().part(CapturedParts)._table.clear()
    elif name == "restored":
        _use_code(_FIRST_ONE)
        _use_function(FORWARDS[0])


def _use_function(function: Any) -> None:
    # A recording ends at ``globals()``, also in functions that the recorded one only could call.
    setattr(sys.modules[__name__], "forward_there", function)  # noqa: B010


def _use_code(code: Any) -> None:
    Layers._one = code  # type: ignore[method-assign]
