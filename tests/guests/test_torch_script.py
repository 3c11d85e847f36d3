"""TorchScript's functions and modules as callees and as arguments."""

import pytest
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist import backward, get_gradients

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch


def script(scripted):
    """Return a function or module in TorchScript, which PyTorch wants to leave for ``torch.compile``."""
    with pytest.warns(DeprecationWarning, match="deprecated"):
        return torch.jit.script(scripted)


@script
def scaled(x: torch.Tensor, factor: int = 2) -> torch.Tensor:
    return x * factor


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), 3.0))

    def forward(self, x):
        return x * self.weight


def call(function, *args):
    return function(*args)


def is_here(function):
    return function is scaled


def test_a_function_of_a_module_is_called_by_its_name(workers):
    x = torch.ones(3)
    assert rpc.rpc_sync("b", scaled, (x,), {"factor": 5}).equal(x * 5)
    assert rpc.remote("b", scaled, (x,)).to_here().equal(x * 2)
    assert rpc.rpc_sync("b", is_here, (scaled,)) and rpc.rpc_sync("b", call, (scaled, x)).equal(x * 2)


def test_gradients_go_through_a_function_on_another_worker(workers):
    leaf = torch.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        backward(context, [rpc.rpc_sync("b", scaled, (leaf, 4)).sum()])
        assert get_gradients(context)[leaf].equal(torch.full((3,), 4.0))


@pytest.mark.filterwarnings("ignore:`torch.jit.:DeprecationWarning")
def test_a_function_without_a_name_and_a_module_travel_by_value(workers):
    @script
    def more(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    x = torch.ones(3)
    assert rpc.rpc_sync("b", more, (x,)).equal(x + 1) and rpc.rpc_sync("b", call, (more, x)).equal(x + 1)
    layer = script(Layer())
    assert rpc.rpc_sync("b", layer, (x,)).equal(x * 3)
    kept = rpc.remote("b", call, (torch.nn.Identity(), layer))
    assert kept.rpc_sync().forward(x).equal(x * 3)
    assert isinstance(kept.to_here(), torch.jit.ScriptModule)
