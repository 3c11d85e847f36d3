"""The control queue: exactly once over a transport that loses, repeats and reorders."""

import random

import pytest
from telegrad.rpc.links.control_queue import ACKNOWLEDGE_SECONDS, ControlQueue


def test_the_round_trip_is_that_of_a_message_that_was_sent_once():
    queue = ControlQueue()
    for _ in range(2):
        queue.post(b"", 1)
    queue.unsent(10.0)
    queue.acknowledge([0])
    assert queue.round_trip is None
    queue.acknowledge([1], 10.25)
    assert queue.round_trip == 0.25
    queue.post(b"", 1)
    queue.unsent(20.0)
    assert queue.due(30.0)
    queue.acknowledge([2], 31.0)
    assert queue.round_trip == 0.25


def ids(messages):
    return [message.id for message in messages]


def test_a_message_is_sent_once_until_its_pause_is_over():
    queue = ControlQueue(resend_after=1.0, resend_cap=3.0)
    message = queue.post(b"hello", topic=7)
    assert (message.id, message.payload, message.topic) == (0, b"hello", 7)
    assert queue.next_due() == 0.0
    assert ids(queue.due(10.0)) == [0]
    assert queue.due(10.5) == []
    assert queue.next_due() == 11.0


def test_the_pause_doubles_up_to_the_cap():
    queue = ControlQueue(resend_after=1.0, resend_cap=3.0)
    queue.post(b"", 0)
    queue.due(0.0)
    times = []
    for _ in range(5):
        times.append(queue.next_due())
        assert ids(queue.due(times[-1])) == [0]
    assert times == [1.0, 3.0, 6.0, 9.0, 12.0]


def test_a_peer_silent_for_ages_does_not_overflow_the_backoff():
    queue = ControlQueue(resend_after=1.0, resend_cap=2.0)
    queue.post(b"", 0)
    for _ in range(3000):
        queue.due(queue.next_due())
    assert queue.open == 1


def test_unsent_gives_only_what_was_never_sent():
    queue = ControlQueue(resend_after=1.0)
    queue.post(b"", 0)
    assert ids(queue.unsent(0.0)) == [0]
    queue.post(b"", 0)
    assert ids(queue.unsent(5.0)) == [1]
    assert ids(queue.due(5.0)) == [0]


def test_acknowledged_messages_are_not_repeated():
    queue = ControlQueue(resend_after=1.0)
    for _ in range(3):
        queue.post(b"", 0)
    queue.due(0.0)
    queue.acknowledge([0, 2, 2, 99])
    assert queue.open == 1
    assert ids(queue.due(1.0)) == [1]
    queue.acknowledge([1])
    assert queue.next_due() is None
    assert queue.due(100.0) == []


def test_many_acknowledged_messages_leave_nothing_behind():
    queue = ControlQueue()
    for _ in range(1000):
        message = queue.post(b"", 0)
        queue.due(0.0)
        queue.acknowledge([message.id])
    assert len(queue._due) <= 65
    assert queue.next_due() is None


def test_a_new_session_makes_all_due_at_once_with_a_short_pause():
    queue = ControlQueue(resend_after=1.0)
    for _ in range(3):
        queue.post(b"", 0)
    for now in (0.0, 1.0, 3.0):
        queue.due(now)
    queue.acknowledge([1])
    queue.reconnected()
    assert queue.next_due() == 0.0
    queue.acknowledge([0])  # from the old session
    assert ids(queue.due(3.5)) == [2]
    assert queue.next_due() == 4.5


def test_a_repetition_is_acknowledged_but_not_delivered():
    queue = ControlQueue()
    assert queue.receive(3)
    assert not queue.receive(3)
    assert queue.receive(0)
    assert queue.take_acks() == [3, 3, 0]
    assert queue.take_acks() == []
    assert queue.received == 2


def test_acknowledgements_that_follow_closely_wait_for_one_another():
    queue = ControlQueue()
    queue.receive(0)
    assert queue.take_acks(7.0) == [0]
    queue.receive(1)
    assert queue.take_acks(7.001) == []
    queue.receive(2)
    assert queue.take_acks(7.002) == []
    assert queue.take_acks(7.0 + 2 * ACKNOWLEDGE_SECONDS) == [1, 2]
    queue.receive(3)
    assert queue.take_acks() == [3]


def test_uncounted_topics_are_delivered_as_well_but_not_counted():
    queue = ControlQueue(uncounted=[9])
    counted, quiet = queue.post(b"", 1), queue.post(b"", 9)
    assert (queue.sent, queue.open) == (1, 1)
    assert ids(queue.due(0.0)) == [counted.id, quiet.id]
    queue.acknowledge([counted.id, quiet.id])
    assert (queue.sent, queue.open) == (1, 0)
    assert queue.receive(0, topic=9)
    assert queue.receive(1, topic=1)
    assert queue.received == 1


def test_a_lost_peer_gets_and_gives_nothing():
    queue = ControlQueue()
    kept = [queue.post(b"a", 0), queue.post(b"b", 0)]
    queue.due(0.0)
    assert queue.receive(0)
    assert queue.peer_lost() == kept
    assert queue.open == 0
    queue.post(b"c", 0)
    assert (queue.sent, queue.open) == (2, 0)
    assert queue.due(100.0) == []
    assert queue.next_due() is None
    assert queue.take_acks() == []
    assert not queue.receive(1)
    assert queue.take_acks() == []
    queue.reconnected()
    assert queue.due(200.0) == []


def test_bad_pauses_are_refused():
    with pytest.raises(ValueError, match="resend_after"):
        ControlQueue(resend_after=0.0)
    with pytest.raises(ValueError, match="resend_cap"):
        ControlQueue(resend_after=2.0, resend_cap=1.0)


@pytest.mark.parametrize("seed", range(50))
def test_exactly_once_over_a_bad_line(seed):
    rng = random.Random(seed)
    here, there = ControlQueue(0.5, 4.0), ControlQueue(0.5, 4.0)
    line, delivered, now = [], [], 0.0
    for number in range(30):
        here.post(b"%d" % number, 0)
    while here.open:
        line.extend(m for m in here.due(now) for _ in range(rng.choice((0, 1, 1, 2))))
        rng.shuffle(line)
        arrived = [line.pop() for _ in range(len(line) // 2 + 1) if line]
        delivered.extend(int(message.payload) for message in arrived if there.receive(message.id))
        acks = there.take_acks()
        if rng.random() < 0.6:
            here.acknowledge(acks)
        if rng.random() < 0.1:
            here.reconnected()
        now += rng.random()
    assert sorted(delivered) == list(range(30))
    assert (here.sent, there.received) == (30, 30)
