"""Errors of distributed autograd that is used in a way that cannot work: what is wrong, and where to look."""

import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError, RpcError
from telegrad.testing import in_process_cluster


@pytest.fixture(autouse=True)
def worker():
    with in_process_cluster("a") as (agent,), agent.use():
        yield agent


def test_parameters_must_be_references():
    with pytest.raises(TypeError, match=r"params_rref\[0\] must be an RRef; you gave Tensor"):
        tg.DistributedOptimizer(tg.optim.SGD, [tg.ones(2)], lr=0.1)


@pytest.mark.parametrize("wrong", [None, 3])
def test_parameters_must_be_a_list(wrong):
    with pytest.raises(TypeError, match="params_rref must be a list of RRefs; you gave"):
        tg.DistributedOptimizer(tg.optim.SGD, wrong, lr=0.1)


def test_an_optimizer_in_place_of_its_class():
    weight = tg.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="optimizer_class must be a class"):
        tg.DistributedOptimizer(tg.optim.SGD([weight], lr=0.1), [tg.RRef(weight)])


@pytest.mark.parametrize(
    ("params", "roots", "message"),
    [
        (lambda: [tg.ones(1)], list, "params must be a dictionary"),
        (lambda: {"a": 1}, list, r"params\['a'\] must be a tensor or an RRef"),
        (lambda: {"a": tg.RRef(1)}, list, r"params\['a'\] .* you gave one to a int"),
        (dict, lambda: tg.ones(1, requires_grad=True).sum(), "roots must be a list of tensors"),
        (dict, lambda: [1], "roots must be a list of tensors"),
    ],
)
def test_pictures_of_what_cannot_be_drawn(params, roots, message):
    with tg.autograd_dist.context() as context, pytest.raises(TypeError, match=message):
        tg.autograd_dist.draw(context, None, params(), roots())


def test_references_must_be_to_tensors():
    with pytest.raises(TypeError, match=r"must refer to tensors; OwnerRRef.* refers to a dict"):
        tg.DistributedOptimizer(tg.optim.SGD, [tg.RRef({})], lr=0.1)


def test_a_context_that_is_not_there():
    with pytest.raises(RpcError, match="no autograd context 99 on worker 'a'"):
        tg.autograd_dist.backward(99, [tg.ones(1, requires_grad=True).sum()])
    with pytest.raises(RpcError, match="no autograd context 99 on worker 'a'"):
        tg.autograd_dist.get_gradients(99)


def test_a_mode_that_is_not_there():
    with tg.autograd_dist.context() as context, pytest.raises(ValueError, match=r"mode must be .* you gave 'slow'"):
        tg.autograd_dist.backward(context, [tg.ones(1, requires_grad=True).sum()], mode="slow")


@pytest.mark.parametrize("root", [None, 1.0, "loss"])
def test_roots_that_are_no_tensors(root):
    with tg.autograd_dist.context() as context, pytest.raises(TypeError, match="root 0 must be a tensor; you gave"):
        tg.autograd_dist.backward(context, [root])


def test_a_step_in_a_context_that_is_over_is_refused_at_the_caller():
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, [tg.RRef(tg.ones(2, requires_grad=True))], lr=0.1)
    with tg.autograd_dist.context() as context:
        pass
    for wrong in (context, None, "x"):
        with pytest.raises(RpcError, match="there is no autograd context"):
            optimizer.step(wrong)


def test_a_refused_backward_leaves_nothing(worker):
    weight = tg.ones(2, requires_grad=True)
    with tg.autograd_dist.context() as context:
        for roots in ([tg.ones(1).sum()], [weight * 2], [None]):
            with pytest.raises((AutogradError, TypeError)):
                tg.autograd_dist.backward(context, roots)
        assert not tg.autograd_dist.get_gradients(context)
        tg.autograd_dist.backward(context, [(weight * 2).sum()])
        assert tg.autograd_dist.get_gradients(context)[weight].tolist() == [2.0, 2.0]
    assert worker.debug_info()["contexts"] == 0


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        (lambda: [tg.ones(1).sum()], "root 0 does not require grad"),
        (lambda: [tg.ones(3, requires_grad=True) * 2], r"root 0 must be a scalar; its shape is \(3,\)"),
        (lambda: tg.ones(1, requires_grad=True).sum(), "must be a list of tensors"),
        (lambda: None, "must be a list of tensors"),
        (lambda: 3, "must be a list of tensors"),
        (lambda: iter(()), "must be a list of tensors"),
    ],
)
def test_roots_that_will_not_do(roots, message):
    with tg.autograd_dist.context() as context, pytest.raises(AutogradError, match=message):
        tg.autograd_dist.backward(context, roots())
