"""Due work: done in its order, by one thread at a time, and kept until it is done."""

import threading

import pytest
from telegrad.rpc.threads.due_work import DueWork


@pytest.fixture
def due():
    return DueWork()


def test_work_that_makes_more_work_due_is_a_loop(due):
    done = []

    def first():
        due.add(lambda: done.append("second"))
        due.run()  # does nothing: this thread does the work already
        done.append("first")

    due.add(first)
    due.run()
    assert done == ["first", "second"]


def test_work_that_is_still_to_be_done_stays_first(due):
    done = []

    def stops():
        due.stopped = not done
        return not done

    due.add(stops, lambda: done.append("later"))
    due.run()
    assert not done
    done.append("moved")
    due.stopped = False
    due.run()
    assert done == ["moved", "later"]


def test_work_that_raises_is_over_and_the_rest_is_done_later(due):
    done = []
    due.add(lambda: 1 / 0, lambda: done.append("rest"))
    with pytest.raises(ZeroDivisionError):
        due.run()
    due.run()
    assert done == ["rest"]


def test_work_is_done_by_one_thread_at_a_time(due, thread):
    begun, go_on, done = threading.Event(), threading.Event(), []

    def first():
        begun.set()
        assert go_on.wait(30)
        done.append(threading.current_thread())

    due.add(first)
    doing = thread(due.run)
    assert begun.wait(30)
    due.add(lambda: done.append(threading.current_thread()))
    due.run()
    assert not done
    go_on.set()
    doing.join()
    assert done == [doing] * 2
