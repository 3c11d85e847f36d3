"""Answers of ``None``: those of a crowd travel together, and none is lost."""

import time
from functools import partial

import pytest
from helpers.frames import Frames
from helpers.interrupts import Interrupter
from telegrad.rpc.calls.replies import MOST_TOGETHER, DoneAnswers
from telegrad.rpc.threads.timers import Timers
from telegrad.rpc.wire.control import decode_done
from telegrad.rpc.wire.header import FrameKind
from telegrad.testing.cluster import cluster


@pytest.fixture
def b():
    with cluster(["a", "b"]) as agents:
        yield agents[1]


@pytest.fixture
def waiting():
    return []


@pytest.fixture
def answers(b, waiting):
    """Answers without a clock: none is sent because a millisecond has passed."""
    return DoneAnswers(b.control, Timers(time.monotonic), waiting)


@pytest.fixture
def session(b):
    made = Frames()
    made.flow = b.sessions.new_flow(made)
    return made


def ids(session):
    return [list(decode_done(frame)) for frame in session.frames if frame[0] == FrameKind.DONE]


def test_an_answer_leaves_at_once_where_few_requests_wait(answers, waiting, session):
    waiting[:] = range(8)
    answers.send(session, 5)
    answers.send(session, 6)
    assert ids(session) == [[5], [6]]


def test_answers_of_a_crowd_leave_with_that_to_the_last_request(answers, waiting, session):
    waiting[:] = range(20)
    for number in range(20):
        waiting.pop()
        answers.send(session, number)
    assert ids(session) == [list(range(20))]


def test_no_more_wait_than_travel_together(answers, waiting, session):
    waiting[:] = range(1000)
    for number in range(2 * MOST_TOGETHER):
        answers.send(session, number)
    assert ids(session) == [list(range(MOST_TOGETHER)), list(range(MOST_TOGETHER, 2 * MOST_TOGETHER))]


def test_answers_wait_for_a_millisecond_at_most(b, waiting, session, until):
    answers = DoneAnswers(b.control, b.timers, waiting)
    waiting[:] = range(1000)
    answers.send(session, 1)
    answers.send(session, 2)
    until(lambda: [each for frame in ids(session) for each in frame] == [1, 2])


def test_each_session_gets_its_own(b, answers, waiting, session):
    other = Frames()
    other.flow = b.sessions.new_flow(other)
    waiting[:] = range(10)
    for number in range(4):
        answers.send((session, other)[number % 2], number)
    waiting.clear()
    answers.send(session, 4)
    assert ids(session) == [[0, 2, 4]] and ids(other) == [[1, 3]]


def test_an_interrupt_loses_no_answer(b, waiting, session, until):
    """Ctrl-C, say, at every call of a thread that answers: only the answer during which it came may be missing."""
    answers = DoneAnswers(b.control, b.timers, waiting)
    interrupter, number, places = Interrupter(), 0, [""]
    while places[-1] is not None:
        waiting[:] = range(10)
        answers.send(session, number)
        waiting.clear()
        places.append(interrupter.run(partial(answers.send, session, number + 1)))
        until(lambda at=number: any(at in frame for frame in ids(session)))
        number += 2
    assert len(places) > 5
