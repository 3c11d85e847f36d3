"""Parts of an agent that are made when they are first needed, by whichever way comes first."""

import threading

import pytest
from telegrad import rpc
from telegrad.rpc.exactly_once.call_journal import CallJournal
from telegrad.testing import in_process_cluster

METHOD, TOPIC = 200, 200


class Part:
    """Part that answers a method and a topic."""

    def __init__(self, agent):
        self.heard = []
        agent.server.serve(METHOD, lambda call: call.reply(call.open() * 2))
        agent.control.on(TOPIC, lambda peer, payload: self.heard.append(payload))


@pytest.fixture
def pair():
    """Two agents; the second has a late part, and a list of those that were made."""
    with in_process_cluster("a", "b") as (a, b), a.use():
        made = []

        def make():
            made.append(Part(b))
            b.add_part(made[-1])

        b.late.add(make, ("Part",), (METHOD,), (TOPIC,))
        yield a, b, made


def ask(a, value):
    return a.caller.request(a.peers.find("b"), METHOD, value, 30.0, "a question").wait()


def test_the_first_request_makes_it_once(pair):
    a, b, made = pair
    assert made == [] and not b.late.made("Part")
    assert [ask(a, 1), ask(a, 2)] == [2, 4]
    assert [b.part(Part)] == made and b.late.made("Part")


def test_the_first_control_message_makes_it_and_is_delivered(pair):
    a, _, made = pair
    for payload in (b"first", b"second"):
        a.control.post(a.peers.find("b"), TOPIC, payload)
    a.control.drain().wait(30)
    assert [part.heard for part in made] == [[b"first", b"second"]]


def test_threads_that_ask_together_get_the_same(pair):
    _, b, made = pair
    together, found = threading.Barrier(4), []

    def find():
        together.wait(30)
        found.append(b.part(Part))

    threads = [threading.Thread(target=find) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == made * 4 and len(made) == 1


def test_a_request_fails_if_its_part_cannot_be_made_and_the_next_tries_again(pair):
    a, b, made = pair
    problems = [RuntimeError("no memory"), RuntimeError("no memory")]

    def make():
        if problems:
            raise problems.pop()
        made.append(Part(b))

    b.late.add(make, ("Part",), (METHOD,))
    with pytest.raises(RuntimeError, match="no memory"):
        ask(a, 1)
    assert ask(a, 3) == 6 and len(made) == 1


def test_a_part_that_no_layer_has_is_a_key_error(pair):
    with pytest.raises(KeyError):
        pair[0].part(Part)


def test_parts_of_a_worker_are_made_when_it_uses_them(pair):
    a, b, _ = pair
    for name in (
        "Producers",
        "MeshCalls",
        "Debugger",
        "Mailbox",
        "ElasticTrainings",
        "Contexts",
        "ProfilerInterceptor",
    ):
        assert not a.late.made(name)
    assert list(rpc.stream("b", range, args=(3,))) == [0, 1, 2]
    assert b.late.made("Producers") and not a.late.made("Producers")
    assert rpc.call_journal() is a.part(CallJournal)
