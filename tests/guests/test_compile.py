"""Compiled functions with arrays of PyTorch: they run eagerly, say once why, and give what they give without ``compile``."""

import warnings

import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.testing import in_process_cluster

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch


def double(x):
    return x * 2


LAYER = torch.nn.Linear(3, 3)


def sent(x):
    return rpc.rpc_sync("b", double, (torch.full((3,), x.item()),)).sum()


def used(x):
    return LAYER(torch.full((3,), x.item())).sum()


def in_a_step(x):
    with autograd_dist.context() as context:
        leaf = torch.full((3,), x.item(), requires_grad=True)
        autograd_dist.backward(context, [rpc.rpc_sync("b", double, (leaf,)).sum()])
        return autograd_dist.get_gradients(context)[leaf].sum()


@pytest.mark.parametrize(
    ("function", "made"),
    [(double, lambda number: torch.full((3,), number)), *((each, tg.tensor) for each in (sent, used, in_a_step))],
)
def test_it_runs_eagerly_and_says_why_once(function, made):
    with in_process_cluster("a", "b") as agents, agents[0].use():
        compiled, inputs = tg.compile(function), [made(float(number)) for number in range(1, 5)]
        expected = [function(each).tolist() for each in inputs]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert [compiled(each).tolist() for each in inputs] == expected
    (warning,) = told
    assert "it uses PyTorch, whose operations are not recorded" in str(warning.message) and not compiled.plans()
