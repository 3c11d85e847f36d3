"""Due work: done in its order, by one thread at a time, and kept until it is done."""

import pytest
from telegrad.rpc.due_work import DueWork


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


def test_interrupted_work_is_done_again_and_the_rest_later(due):
    done = []

    def interrupted():
        done.append("tried")
        if len(done) == 1:
            raise KeyboardInterrupt

    due.add(interrupted, lambda: done.append("rest"))
    with pytest.raises(KeyboardInterrupt):
        due.run()
    due.run()
    assert done == ["tried", "tried", "rest"]
