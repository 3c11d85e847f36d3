"""Errors of backward passes on other workers: they arrive with both tracebacks, and stop the pass everywhere."""

import contextlib
import contextvars
import gc
import threading
import traceback

import pytest
import telegrad as tg
from helpers.remote import Gate, SlowBackward, weights
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist.anomaly import AnomalyOfCall
from telegrad.autograd_dist.contexts import contexts_of
from telegrad.autograd_dist.local_pass import Unfed
from telegrad.autograd_dist.numbers import GradientTopic
from telegrad.autograd_dist.pass_requests import PassRequests
from telegrad.base.errors import AutogradError, RpcTimeoutError, WorkerLostError
from telegrad.core import interception
from telegrad.proto.autograd_dist_pb2 import PassStopped

pytestmark = pytest.mark.usefixtures("contexts_end")


class Failing(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x, what):
        ctx.what = what
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError(ctx.what)


class Refusing(Failing):
    @staticmethod
    def backward(ctx, gradient):
        raise Exception(ctx.what)


def refusing(x):
    return Refusing.apply(x, "refused")


def failing(x, what="in the backward"):
    return Failing.apply(x, what)  # the line that is shown


def through_b(x, what):
    return rpc.rpc_sync("b", failing, (x * 2.0, what))


async def failing_later(x, what):
    return await rpc.rpc_async("b", failing, (x, what))


def makes_a_nan(x):
    return (x - x).sqrt() * 0.0  # 0 / 0 in the backward


ROUTES = {"b": ("b", failing), "c, b": ("c", through_b), "a": ("a", failing), "coroutine": ("c", failing_later)}


def error_of(route, mode, *args):
    worker, function = ROUTES[route]
    with mode, autograd_dist.context() as context:
        loss = rpc.rpc_sync(worker, function, (weights(1, 2), *args)).sum()
        with pytest.raises(KeyError) as caught:
            autograd_dist.backward(context, [loss])
    return caught.value, "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("route", ROUTES)
def test_an_error_has_both_tracebacks_and_in_anomaly_mode_the_forward_line(workers, route):
    error, text = error_of(route, tg.autograd.detect_anomaly(), "in the backward")
    assert "FailingBackward failed in the backward pass. Its forward call" in str(error)
    assert "return Failing.apply(x, what)  # the line that is shown" in str(error)
    assert "raise KeyError(ctx.what)" in text and "autograd_dist.backward(context, [loss])" in text
    if route != "a":
        assert "on worker 'b'" in text
        assert "server_call.py" not in str(error), "lines of rpc say nothing to the author"


@pytest.mark.parametrize("backward", [autograd_dist.backward, lambda *args: autograd_dist.backward_async(*args).wait()])
@pytest.mark.parametrize("function, kind", [(failing, KeyError), (refusing, Exception)])
@pytest.mark.parametrize("worker", ["a", "b"])
def test_whatever_a_rule_raises_is_a_runtime_error(workers, backward, function, kind, worker):
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync(worker, function, (weights(1, 2),)).sum()
        with pytest.raises(RuntimeError, match=r"in the backward|refused") as caught:
            backward(context, [loss])
    assert isinstance(caught.value, kind)


def test_an_error_without_text_has_the_forward_line_too(workers):
    error, text = error_of("b", tg.autograd.detect_anomaly(check_nan=False), 3)
    assert error.args == (3,) and "# the line that is shown" in text


def test_without_anomaly_mode_there_is_no_forward_line(workers):
    error, text = error_of("b", tg.enable_grad(), "in the backward")
    assert error.args == ("in the backward",) and "# the line that is shown" not in text
    assert text.count("autograd_dist.backward(context, [loss])") == 1 and text.count("raise KeyError(ctx.what)") == 1


def test_a_nan_on_another_worker_is_found(workers):
    with tg.autograd.detect_anomaly(), autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", makes_a_nan, (weights(1, 2),)).sum()
        with pytest.raises(AutogradError, match="SqrtBackward made a nan") as caught:
            autograd_dist.backward(context, [loss])
    assert "0 / 0 in the backward" in str(caught.value)


def test_anomaly_mode_without_nan_travels_as_it_is(workers):
    with tg.autograd.detect_anomaly(check_nan=False), autograd_dist.context() as context:
        x = weights(1, 2)
        autograd_dist.backward(context, [rpc.rpc_sync("b", makes_a_nan, (x,)).sum()])
        assert autograd_dist.get_gradients(context)[x].isnan().all()


def test_anomaly_mode_travels_with_a_call_and_ends_with_it(workers, until):
    def of_this_call_alone():
        AnomalyOfCall().enter_context()  # detect_anomaly() would be on in the whole process
        return error_of("coroutine", contextlib.nullcontext(), "in the backward")

    error, _ = contextvars.copy_context().run(of_this_call_alone)
    assert "FailingBackward failed in the backward pass. Its forward call" in str(error)
    del error
    until(lambda: gc.collect() is not None and not interception.entered)


def test_anomaly_mode_of_a_process_is_on_in_the_threads_that_serve_calls(workers):
    with tg.autograd.detect_anomaly():
        assert rpc.rpc_sync("b", tg.autograd.is_anomaly_enabled)
    assert not rpc.rpc_sync("b", tg.autograd.is_anomaly_enabled)


# -- the pass stops everywhere


class Mark(tg.autograd.Function):
    """Notes that its backward ran."""

    ran = False

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        Mark.ran = True
        return gradient


def slow(x):
    return SlowBackward.apply(Mark.apply(x))


def slow_at(x, worker):
    return rpc.rpc_sync(worker, slow, (x,))


@pytest.fixture
def gate():
    Gate.event, Mark.ran = threading.Event(), False
    yield Gate.event
    Gate.event.set()


def stopped(agent, context):
    return any(part._failure for part in contexts_of(agent).find(context).passes._parts.values())


def test_a_pass_that_fails_on_one_worker_stops_on_the_others(workers, until, gate):
    x, (_, b, _) = weights(1, 2), workers
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", slow, (x,)).sum() + rpc.rpc_sync("c", failing, (x,)).sum()
        with pytest.raises(KeyError, match="in the backward"):
            autograd_dist.backward(context, [loss])
        until(lambda: stopped(b, context))
        gate.set()
        until(lambda: not b.debug_info()["serving"])
        assert not Mark.ran


@pytest.mark.parametrize("worker", ["y", "z"])
def test_a_backward_that_times_out_stops_on_other_workers(cluster, until, gate, worker):
    """Also on one that the root does not know of: those that were told tell others."""
    with cluster("x", "y", "z") as agents, agents[0].use():
        here, there = agents[0], agents["xyz".index(worker)]
        x = weights(1, 2)
        with autograd_dist.context() as context:
            slowly = slow_at(x, "y") if worker == "y" else rpc.rpc_sync("y", slow_at, (x, "z"))
            here.rpc_timeout = 0.2
            with pytest.raises(RpcTimeoutError, match="with 'y' got no answer within"):
                autograd_dist.backward(context, [slowly.sum()])
            until(lambda: stopped(there, context))
            gate.set()
            until(lambda: not there.debug_info()["serving"])
            assert not Mark.ran
            here.rpc_timeout = 20
            autograd_dist.backward(context, [rpc.rpc_sync("y", tg.mul, (x, 3.0)).sum()])
            assert autograd_dist.get_gradients(context)[x].tolist() == [3.0, 3.0]
        for agent in agents:
            until(lambda agent=agent: agent.debug_info()["contexts"] == 0)


def test_a_stop_that_overtakes_its_pass_stops_it(workers, until):
    """The news is a control message, and may come before the request."""
    x, (a, b, _) = weights(1, 2), workers
    with autograd_dist.context() as context:
        result = rpc.rpc_sync("b", tg.mul, (x, 2.0)).sum()
        expected = contexts_of(a).find(context).passes._last + 1
        news = PassStopped(context=context, root=a.rank, number=expected, oldest=expected, reason="a test")
        a.control.post(a.peers.find("b"), GradientTopic.PASS_STOPPED, news.SerializeToString())
        until(lambda: stopped(b, context))
        with pytest.raises(AutogradError, match="the backward was stopped by worker 'a': a test"):
            autograd_dist.backward(context, [result])


@pytest.mark.parametrize("lost", ["b", "c"])
def test_messages_that_a_lost_worker_cannot_tell_of_any_more_fail_by_its_name(cluster, until, lost):
    """The program is not to blame, in smart mode least of all."""
    with cluster("a", "b", "c") as agents:
        a, b, c = agents
        for name in "bc":
            with a.use():
                rpc.rpc_sync(name, abs, (-1,))
        requests = PassRequests(a, 1, (0, 1, 0), False, True)
        unfed = [(b.number, Unfed(7, c.number, 1))]
        assert type(requests.unfed_error(unfed)) is AutogradError
        agents["bc".index(lost) + 1].close()
        until(lambda: a.peers.find(lost).gone)
        error = requests.unfed_error(unfed)
        assert isinstance(error, WorkerLostError) and error.worker == lost
