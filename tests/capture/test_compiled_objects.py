"""Compiled functions and modules as objects: their attributes, copies, and places in other modules."""

import copy
import pickle

import pytest
import telegrad as tg
from telegrad import nn


def test_attributes_of_a_compiled_function_are_those_of_the_function():
    @tg.compile
    def run(x):
        return x * run.scale

    for scale in (1, 2, 1, 2, 1, 2):
        run.scale = scale
        assert run(tg.ones(2)).tolist() == [scale, scale]
    assert run.__wrapped__.scale == 2 and len(run.plans()) == 2
    del run.scale
    assert not hasattr(run.__wrapped__, "scale")
    net = tg.compile(nn.Dropout(0.5))
    net.p = 0.0
    assert net.__wrapped__.p == 0.0 and net(tg.ones(2)).tolist() == [1, 1]


def test_a_compiled_module_inside_of_a_module():
    net = nn.Module()
    with pytest.warns(UserWarning, match=r"'block' is a compiled module.*block.forward = tg.compile\(block.forward\)"):
        net.block = tg.compile(nn.Linear(2, 2))
    with pytest.raises(TypeError, match="compile its forward instead"):
        nn.Sequential(tg.compile(nn.Linear(2, 2)))
    net.first = nn.Linear(2, 2)
    net.fast = tg.compile(net.first)  # its parameters are found
    with pytest.raises(TypeError, match="compile its forward instead"):
        net.first = net.fast
    net.first.forward = tg.compile(net.first.forward)
    results = {bytes(net.first(tg.ones(2)).detach().numpy()) for _ in range(4)}
    assert len(results) == 1 and net.first.forward.plans()[0].replays == 2 and len(list(net.parameters())) == 2


def test_copies_of_compiled_modules():
    net = tg.compile(nn.Linear(2, 2))
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        made.weight.data.zero_()
        assert made(tg.ones(2)).tolist() == made.bias.tolist() and net.weight.abs().sum() > 0
    assert repr(net) == f"compile({net.__wrapped__!r})"
