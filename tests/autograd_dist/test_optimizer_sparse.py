"""``DistributedOptimizer`` with gradients that are sparse, or missing."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, optim, rpc
from telegrad.testing import in_process_cluster


class Words:
    """Tables whose gradients are sparse, and a parameter that no loss uses."""

    def __init__(self, kind):
        tg.manual_seed(3)
        self.module = kind(5, 2, sparse=True).double()
        self.unused = tg.ones(2, requires_grad=True)

    def forward(self, words):
        return self.module(words)

    def parameter_rrefs(self):
        return [tg.RRef(self.module.weight), tg.RRef(self.unused)]

    def values(self):
        return self.module.weight.detach().numpy().copy(), self.unused.tolist()

    def gradient(self, context):
        found = autograd_dist.get_gradients(context)
        return found[self.module.weight].is_sparse, self.unused in found


@pytest.mark.parametrize("optimizer_class", [optim.SparseAdam, optim.SGD, optim.Adagrad])
@pytest.mark.parametrize("kind", [tg.nn.Embedding, tg.nn.EmbeddingBag])
@pytest.mark.parametrize("hogwild", [False, True])
def test_sparse_gradients_step_their_rows_and_none_steps_nothing(kind, optimizer_class, hogwild):
    words, local = tg.tensor([[0, 3], [3, 1]]), Words(kind)
    reference = optimizer_class([local.module.weight], lr=0.1)
    with in_process_cluster("a", "b") as (a, _), a.use():
        table = rpc.remote("b", Words, (kind,))
        parameters = table.rpc_sync().parameter_rrefs()
        optimizer = autograd_dist.DistributedOptimizer(optimizer_class, parameters, lr=0.1, hogwild=hogwild)
        for _ in range(3):
            with autograd_dist.context() as context:
                autograd_dist.backward(context, [(table.rpc_sync().forward(words) ** 2).sum()])
                assert table.rpc_sync().gradient(context) == (True, False)
                optimizer.step(context)
            reference.zero_grad()
            (local.forward(words) ** 2).sum().backward()
            reference.step()
        found, unused = table.rpc_sync().values()
        np.testing.assert_allclose(found, local.values()[0], rtol=0, atol=1e-12)
        assert unused == [1.0, 1.0]
        del table, parameters, optimizer
