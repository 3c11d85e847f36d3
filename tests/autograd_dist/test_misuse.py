"""Errors of distributed autograd that is used in a way that cannot work: what is wrong, and where to look."""

import pytest
import telegrad as tg
from telegrad.core.errors import AutogradError, RpcError
from telegrad.testing import in_process_cluster


@pytest.fixture(autouse=True)
def worker():
    with in_process_cluster("a") as (agent,), agent.use():
        yield agent


def test_parameters_must_be_references():
    with pytest.raises(TypeError, match=r"params_rref\[0\] must be an RRef; you gave Tensor"):
        tg.DistributedOptimizer(tg.optim.SGD, [tg.ones(2)], lr=0.1)


def test_references_must_be_to_tensors():
    with pytest.raises(TypeError, match=r"must refer to tensors; OwnerRRef.* refers to a dict"):
        tg.DistributedOptimizer(tg.optim.SGD, [tg.RRef({})], lr=0.1)


def test_a_context_that_is_not_there():
    with pytest.raises(RpcError, match="no autograd context 99 on worker 'a'"):
        tg.autograd_dist.backward(99, [tg.ones(1, requires_grad=True).sum()])
    with pytest.raises(RpcError, match="no autograd context 99 on worker 'a'"):
        tg.autograd_dist.get_gradients(99)


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        (lambda: [tg.ones(1).sum()], "root 0 does not require grad"),
        (lambda: [tg.ones(3, requires_grad=True) * 2], r"root 0 must be a scalar; its shape is \(3,\)"),
        (lambda: tg.ones(1, requires_grad=True).sum(), "must be a list of tensors"),
    ],
)
def test_roots_that_will_not_do(roots, message):
    with tg.autograd_dist.context() as context, pytest.raises(AutogradError, match=message):
        tg.autograd_dist.backward(context, roots())
