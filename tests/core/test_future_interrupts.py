"""Signal handlers that raise while a future completes: no thread waits for ever."""

import threading
from functools import partial

import pytest
from helpers.interrupts import OpcodeInterrupter
from telegrad.core.futures import Future

SECONDS = 30


def late(frame):
    raise TimeoutError("the user's own time limit")


@pytest.mark.parametrize("complete", [lambda future: future.set_result(1), lambda future: future.cancel()])
def test_wherever_a_handler_raises_the_waiting_threads_are_woken(complete, until):
    interrupter, place = OpcodeInterrupter(action=late), "begin"
    while place is not None:
        future, ended = Future(), []

        def wait(future=future, ended=ended):
            ended.append(future._block(SECONDS))

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda future=future: len(future._waiters) == 2)
        try:
            place = interrupter.run(partial(complete, future))
        except TimeoutError:
            place = "raised"
        if not future.done():
            complete(future)
        for thread in threads:
            thread.join(SECONDS / 3)
        assert ended == [True, True], interrupter._place
