"""News of ended contexts: it rides on requests, and leaves as control messages."""

import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist.contexts import contexts_of
from telegrad.autograd_dist.lifetimes import Orphan, Release
from telegrad.autograd_dist.numbers import GradientTopic
from telegrad.core.extend import anomaly_mode
from telegrad.testing import in_process_cluster

FOREVER = 60


def set_times(monkeypatch, batch=FOREVER, ride=FOREVER, late=FOREVER):
    for name, seconds in (("BATCH_SECONDS", batch), ("RIDE_SECONDS", ride), ("TOLD_SECONDS", late)):
        monkeypatch.setattr(f"telegrad.autograd_dist.news.{name}", seconds)


@pytest.fixture
def workers():
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        yield agents


@pytest.fixture
def posted(workers):
    """Senders of control messages about contexts."""
    senders = []
    for agent in workers:
        agent.control.post = noting(agent, agent.control.post, senders)
    return senders


def noting(agent, post, senders):
    def noted(peer, topic, payload):
        if topic == GradientTopic.CONTEXT:
            senders.append(agent.name)
        post(peer, topic, payload)

    return noted


def through(x, route):
    return x * 2.0 if not route else rpc.rpc_sync(route[0], through, (x * 2.0, route[1:]))


def step(route="bc"):
    x = tg.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [through(x, route).sum()])
        return autograd_dist.get_gradients(context)[x].tolist()


def contexts(workers):
    return [agent.debug_info()["contexts"] for agent in workers]


def test_news_rides_on_the_next_request_to_each_worker_of_a_chain(workers, posted, monkeypatch):
    set_times(monkeypatch, ride=0)
    for _ in range(20):
        assert step() == [8.0] * 3
    # The last context is not told; c hears of the one before by the request of b that came just after b heard of it.
    assert contexts(workers) == [0, 1, 1] and not posted


def test_news_that_is_young_does_not_ride(workers, posted, monkeypatch):
    set_times(monkeypatch)
    for _ in range(5):
        step()
    assert contexts(workers) == [0, 5, 5] and not posted


def test_news_that_rode_on_requests_is_told_again_by_one_control_message(workers, posted, until, monkeypatch):
    set_times(monkeypatch, ride=0)
    for _ in range(20):
        step("b")
    contexts_of(workers[0]).news.post_all()
    until(lambda: contexts(workers) == [0, 0, 0])
    assert posted == ["a"]


def test_news_that_rode_on_a_request_that_was_lost_arrives(workers, posted, until, monkeypatch):
    set_times(monkeypatch, ride=0)
    step("b")
    assert contexts_of(workers[0]).news.riding(workers[1].number)  # of a request that does not arrive
    assert contexts(workers) == [0, 1, 0]
    contexts_of(workers[0]).news.post_all()
    until(lambda: contexts(workers) == [0, 0, 0])


def test_news_that_rode_is_told_late(workers, posted, until, monkeypatch):
    set_times(monkeypatch, ride=0, late=0.01)
    news = contexts_of(workers[0]).news
    step("b")
    step("b")
    news._look()  # the news has ridden, and may have been there for 0.01 s
    until(lambda: contexts(workers) == [0, 0, 0])
    assert posted == ["a"]


def test_a_look_keeps_news_that_has_ridden_and_sends_other_news(workers, posted, until, monkeypatch):
    set_times(monkeypatch, ride=0)
    news = contexts_of(workers[0]).news
    step("b")
    step("b")  # the news of the first rides on this
    step("c")
    news._look()
    until(lambda: contexts(workers) == [0, 1, 0])
    assert posted == ["a"]


def test_news_beside_an_orphan_does_not_ride(workers, monkeypatch):
    set_times(monkeypatch, ride=0)
    news = contexts_of(workers[0]).news
    news.add(1, Orphan(7))
    assert news.riding(1) == b""
    news.add(1, Release(8, 8))
    assert news.riding(1) == b"" and news.riding(2) == b""


def checks_nan():
    mode = anomaly_mode()
    return mode is not None and mode.check_nan


@pytest.mark.parametrize("check_nan", [True, False])
def test_news_rides_beside_the_anomaly_mode(workers, monkeypatch, check_nan):
    set_times(monkeypatch, ride=0)
    step("b")
    with tg.autograd.detect_anomaly(check_nan), autograd_dist.context():
        assert rpc.rpc_sync("b", checks_nan) is check_nan
    assert contexts(workers) == [0, 1, 0]
