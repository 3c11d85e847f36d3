"""Forms of calls that a step does not replay: it runs eagerly, says once why, and gives what it gives without ``compile``."""

import warnings

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.testing import in_process_cluster


def double(x):
    return x * 2


def multiples(x):
    yield x * 2
    yield x * 3


def scaled(x, factors):
    return x * float(factors.sum())


def total(x):
    return x.sum().item()


def named(x):
    return {"double": x * 2, "sum": x.sum().item()}


class Scale:
    def __init__(self):
        self.weight = tg.full((3,), 3.0)

    def forward(self, x):
        return x * self.weight


class Job:
    """References and a mesh, which steps use beside their arguments."""

    def __init__(self):
        self.scale = rpc.remote("b", Scale)
        self.ones = rpc.remote("b", tg.ones, (3,))
        self.mesh = rpc.mesh(["b", "c"])


OTHER_WORKERS = "a step calls other workers by rpc_sync, rpc_async, and methods of references, not by "
FORMS = {
    "mesh": (lambda job, x: job.mesh.call(double, (x,))["c"], OTHER_WORKERS + "Mesh.call()"),
    "mesh, reduced": (lambda job, x: job.mesh.call(double, (x,), reduce="sum"), OTHER_WORKERS + "Mesh.call()"),
    "stream": (lambda job, x: sum(rpc.stream("b", multiples, (x,)), start=tg.zeros(3)), OTHER_WORKERS + "stream()"),
    "remote": (lambda job, x: rpc.remote("b", double, (x,)).to_here(), OTHER_WORKERS + "remote()"),
    "method of a promise": (
        lambda job, x: job.scale.remote().forward(x).to_here(),
        OTHER_WORKERS + "RRef.remote()",
    ),
    "value": (lambda job, x: rpc.rpc_sync("b", double, (rpc.value(job.ones),)) * x, OTHER_WORKERS + "value()"),
    "copy of a value": (lambda job, x: job.ones.to_here() * x, OTHER_WORKERS + "RRef.to_here()"),
    "future": (lambda job, x: rpc.rpc_sync("c", double, (rpc.rpc_async("b", double, (x,)),)), "is a Future"),
    "array": (lambda job, x: rpc.rpc_sync("b", scaled, (x, np.ones(3))), "is a ndarray"),
    "number": (lambda job, x: x * rpc.rpc_sync("b", total, (x,)), "returned something else than tensors"),
    "future that is not awaited": (
        lambda job, x: [x * 2, rpc.rpc_async("b", double, (x,))][0],
        "does not wait for the result",
    ),
    "dictionary": (lambda job, x: rpc.rpc_sync("b", named, (x,))["double"], "returned something else than tensors"),
}


@pytest.fixture
def job():
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield Job()


def outside(form, job):
    return lambda x: form(job, x)


def inside(form, job):
    def step(x):
        with autograd_dist.context() as context:
            result = form(job, x)
            autograd_dist.backward(context, [(result * x).sum()])
            return autograd_dist.get_gradients(context)[x]

    return step


@pytest.mark.parametrize("around", [outside, inside])
@pytest.mark.parametrize("name", FORMS)
def test_it_runs_eagerly_and_says_why_once(job, name, around):
    form, reason = FORMS[name]
    step = around(form, job)
    inputs = [tg.full((3,), float(call), requires_grad=around is inside) for call in range(1, 5)]
    compiled, expected = tg.compile(step), [step(x).tolist() for x in inputs]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert [compiled(x).tolist() for x in inputs] == expected
    (warning,) = told
    assert reason in str(warning.message) and not compiled.plans()
    lines = range(form.__code__.co_firstlineno - 1, form.__code__.co_firstlineno + 3)
    assert any(f"(test_other_forms.py:{line})" in str(warning.message) for line in lines)


def test_a_step_takes_its_gradients_by_an_optimizer(job):
    compiled = tg.compile(inside(lambda job, x: rpc.rpc_sync("b", double, (x,)), job))
    with pytest.warns(UserWarning, match=r"a DistributedOptimizer.step\(\) .*, and no get_gradients\(\)"):
        for _ in range(2):
            compiled(tg.ones(3, requires_grad=True))
