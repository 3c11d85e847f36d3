"""Meshes of references: an object on each worker, whose methods are called together; references and meshes as arguments."""

import copy

import pytest
import telegrad as tg
from helpers.mesh_workers import NAMES, where
from telegrad import rpc
from telegrad.base.errors import (
    ArgumentKindError,
    SerializationError,
)


class Model:
    """Object of one worker."""

    def __init__(self, first, failing=None):
        if where() == failing:
            raise KeyError(failing)
        self.weight = tg.full((2,), float(first), requires_grad=True)

    def loss(self, factor):
        return (self.weight * factor).sum()

    def parameter(self):
        return rpc.RRef(self.weight)


def first_weight(model):
    return model.weight.tolist()[0]


def test_one_object_on_each_worker_whose_methods_are_called_together(mesh_workers):
    models = rpc.mesh().remote(Model, (rpc.scattered(range(23)),))
    assert len(models) == 23 and [each.owner_name() for each in models] == NAMES
    assert [loss.item() for loss in models.call("loss", (3.0,))] == [6.0 * number for number in range(23)]
    assert models.call(first_weight, reduce="sum") == sum(range(23))
    assert models.call_async("loss", (), {"factor": 1.0})["w4"].item() == 8.0
    assert models["w3"].rpc_sync().loss(1.0).item() == 6.0
    with pytest.raises(ArgumentKindError, match="method is a name"):
        models.call(3)
    with pytest.raises(KeyError, match="w9"):
        rpc.mesh().remote(Model, (1, "w9"))


def names_of(mesh):
    return mesh.shape, mesh.call(where).values()


def sums_of(models):
    return models.call("loss", (1.0,), reduce="sum").item(), models["w2"].owner_name(), models[1, 0].owner_name()


def test_meshes_and_meshes_of_references_travel_and_results_do_not(mesh_workers):
    mesh = rpc.mesh(["w3", "w0", "w2", "w1"], shape={"a": 2, "b": 2})
    assert rpc.rpc_sync("w5", names_of, (mesh,)) == (mesh.shape, ["w3", "w0", "w2", "w1"])
    models = mesh.remote(Model, (rpc.scattered([1, 2, 3, 4]),))
    assert rpc.rpc_sync("w5", sums_of, (models,)) == (20.0, "w2", "w2")
    assert rpc.mesh(NAMES[:6]).call(sums_of, (models,)).values() == [(20.0, "w2", "w2")] * 6
    assert rpc.rpc_sync("w3", copy.copy, (models,))["w2"].owner_name() == "w2"
    with pytest.raises(SerializationError, match=r"argument 0 .* send list\(values\)"):
        rpc.rpc_sync("w5", list, (mesh.call(where),))


def test_a_mesh_of_references_has_a_distributed_optimizer(mesh_workers):
    models = rpc.mesh(NAMES[1:9]).remote(Model, (1,))
    parameters = list(models.call("parameter"))
    with tg.autograd_dist.context() as context:
        loss = models.call("loss", (0.5,), reduce="sum")
        tg.autograd_dist.backward(context, [loss])
        tg.DistributedOptimizer(tg.optim.SGD, parameters, lr=0.5).step(context)
    assert models.call(first_weight).values() == [0.75] * 8
