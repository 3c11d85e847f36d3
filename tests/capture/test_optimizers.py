"""Whole steps with each optimizer, compiled: the bits of eager steps, or eager steps with a reason."""

import inspect

import pytest
import telegrad as tg
from telegrad import nn, optim
from telegrad.nn import functional as F

# LBFGS needs a closure, SparseAdam sparse gradients.
OPTIMIZERS = sorted(
    name
    for name, kind in vars(optim).items()
    if inspect.isclass(kind) and issubclass(kind, optim.Optimizer) and kind is not optim.Optimizer
)


def make(name):
    """Return a step and the parameters that it changes."""
    net = nn.Sequential(nn.Linear(6, 5, bias=False), nn.Tanh(), nn.Linear(5, 3, bias=False))
    if name == "SparseAdam":
        net.insert(0, nn.Embedding(10, 6, sparse=True))
    optimizer = getattr(optim, name)(net[0].parameters() if name == "SparseAdam" else net.parameters(), lr=0.05)

    def loss(x, y):
        optimizer.zero_grad()
        value = F.cross_entropy(net(x), y)
        value.backward()
        return value

    def step(x, y):
        if name == "LBFGS":
            return optimizer.step(lambda: loss(x, y)).detach()
        value = loss(x, y)
        optimizer.step()
        return value.detach()

    return step, list(net.parameters())


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_steps_have_the_bits_of_eager_ones(name):
    logs, compiled = [], None
    for side in range(2):
        tg.manual_seed(0)
        step, parameters = make(name)
        step = step if side == 0 else (compiled := tg.compile(step))
        log = []
        for call in range(6):
            tg.manual_seed(call)
            x = tg.randint(0, 10, (4,)) if name == "SparseAdam" else tg.randn(4, 6)
            result = step(x, tg.randint(0, 3, (4,)))
            log.append([each.detach().numpy().tobytes() for each in (result, *parameters)])
        logs.append(log)
    assert logs[0] == logs[1]
    assert compiled is not None
    (entry,) = compiled._entries.values()
    assert (entry.reason is not None) == (name in ("LBFGS", "SparseAdam"))
    assert sum(plan.replays for plan in entry.plans) == (0 if entry.reason else 4)
