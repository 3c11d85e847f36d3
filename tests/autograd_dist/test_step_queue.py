"""Queue of the steps of a worker: one after another, each in its submitter's context."""

import threading

import pytest
from telegrad.autograd_dist.step_queue import StepQueue
from telegrad.rpc.extend import current_agent


def test_no_submitter_waits_for_those_after_it(workers):
    """A step that arrives while another runs is run by that thread, but not at the cost of its own answer."""
    queue = workers[0].part(StepQueue)
    ran, inside, go = [], threading.Event(), threading.Event()

    def first():
        inside.set()
        assert go.wait(10)
        ran.append("first")

    def again():
        ran.append("again")
        if len(ran) < 1000:
            queue.submit(again)

    submitted = threading.Thread(target=queue.submit, args=(first,))
    submitted.start()
    assert inside.wait(10)
    later = queue.submit(again)
    go.set()
    submitted.join(10)
    assert not submitted.is_alive()
    later.wait(10)
    assert ran[:2] == ["first", "again"]


def test_a_step_runs_in_the_context_of_who_submitted_it(workers, thread):
    """The thread that runs it may be another call's, or one for callbacks, which has no agent."""
    queue = workers[0].part(StepQueue)
    inside, go, found = threading.Event(), threading.Event(), []

    def first():
        inside.set()
        assert go.wait(10)

    thread(queue.submit, first)
    assert inside.wait(10)
    with workers[1].use():
        later = queue.submit(lambda: found.append(current_agent()))
    go.set()
    later.wait(10)
    assert found == [workers[1]]


def test_a_step_that_raises_does_not_stop_the_others(workers):
    queue = workers[0].part(StepQueue)
    with pytest.raises(ZeroDivisionError):
        queue.submit(lambda: 1 / 0).wait()
    assert queue.submit(lambda: None).wait(5) is None
