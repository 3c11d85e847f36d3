"""Modules of PyTorch on another worker are trained as local ones."""

import pytest
from telegrad import autograd_dist
from telegrad.autograd_dist import DistributedOptimizer, backward
from telegrad.rref import RemoteModule, RRef, parameter_rrefs

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch

pytestmark = pytest.mark.usefixtures("wide_numbers", "contexts_end")


def make_model():
    """Return a model that is the same each time, in whatever thread: PyTorch's random numbers are those of the process."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(inplace=True), torch.nn.Linear(5, 2))
    numbers = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, generator=numbers)
    return model


def train_here(model, head, steps):
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        loss = head(model(batch(step))).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def batch(step):
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(step))


def test_a_remote_module_is_trained_as_a_local_one(workers):
    remote_model = RemoteModule("b", make_model)
    head = torch.nn.Linear(2, 1)
    wanted_head = torch.nn.Linear(2, 1)
    wanted_head.load_state_dict(head.state_dict())
    references = [*parameter_rrefs(remote_model), *map(RRef, head.parameters())]
    optimizer = DistributedOptimizer(torch.optim.SGD, references, lr=0.1, momentum=0.9)
    losses = []
    for step in range(6):
        with autograd_dist.context() as context:
            loss = head(remote_model(batch(step))).square().sum()
            backward(context, [loss])
            optimizer.step(context)
        losses.append(loss.item())
    assert losses == pytest.approx(train_here(make_model(), wanted_head, 6), rel=1e-12)
    assert remote_model.train(False).training is False
    with pytest.raises(TypeError, match="you gave a Sequential, an instance"):
        RemoteModule("b", make_model())
