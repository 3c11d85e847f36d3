"""Functions that tests call on other workers, and classes of objects that they make there."""

import numpy as np
import telegrad as tg
from telegrad import rpc


def same(value):
    """Return the argument: what came back went there and back."""
    return value


def pair(one, other):
    """Return both arguments."""
    return one, other


def there_and_back(x, route):
    """A step on every worker of a route."""
    y = tg.tanh(x) * (1.0 + len(route))
    return y if not route else rpc.rpc_sync(route[0], there_and_back, (y, route[1:])) + x


def weights(seed, *shape):
    """Return a leaf of random numbers."""
    return tg.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


class Counter:
    """Object with state and methods of every kind."""

    def __init__(self, count=0):
        self.count = count

    def add(self, number=1):
        self.count += number
        return self.count

    def get(self):
        return self.count

    def fail(self):
        raise KeyError("no")

    async def add_slowly(self, number):
        return self.add(number)

    def me(self):
        return self


def make(value):
    return tg.RRef(value)


def here(reference):
    return reference.to_here()


def local(reference):
    return reference.local_value()


def is_owner(reference):
    return reference.is_owner()


def pass_on(reference, route):
    """Hand a reference on, from worker to worker, and return what the last one fetches."""
    if not route:
        return reference.to_here()
    return rpc.rpc_sync(route[0], pass_on, (reference, route[1:]))


def pass_back(reference, route):
    """Hand a reference on and get it back."""
    if not route:
        return reference
    return rpc.rpc_sync(route[0], pass_back, (reference, route[1:]))


class Gate:
    """The event at which functions on workers of this process wait, until the test sets it."""

    event = None


def wait_at_gate():
    assert Gate.event.wait(20)


class SlowBackward(tg.autograd.Function):
    """Operation whose backward waits at the gate."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        wait_at_gate()
        return gradient


class Shelf:
    """Objects that functions keep after they returned, by name."""

    kept = {}  # noqa: RUF012


def keep(name, value):
    Shelf.kept[name] = value


def kept_value(name):
    return Shelf.kept[name].to_here()


class Parts:
    """Objects of the test that workers of this process share."""

    given = ()


def part(place):
    return Parts.given[place]


def forget(name):
    del Shelf.kept[name]


class Holder:
    """Object with references in it."""

    def __init__(self, reference, more=()):
        self.reference = reference
        self.more = list(more)


def wait_and_make(name):
    """Return a counter once the event of that name on the shelf is set."""
    assert Shelf.kept[name].wait(20)
    return Counter()
