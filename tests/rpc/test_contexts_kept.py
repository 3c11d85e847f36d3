"""Sessions, loops, their tasks and timers keep nothing of the context variables of the call that began them."""

import contextvars
import gc
import weakref

import numpy as np
import pytest
from telegrad import rpc

variable = contextvars.ContextVar("value_of_a_call")


class Value:
    pass


async def same_later(value):
    return value


@pytest.mark.parametrize("payload", [1, np.zeros(3_000_000)], ids=["small", "large"])
def test_the_first_call_to_a_worker_leaves_nothing_of_its_context(workers, until, payload):
    """Check the call that opens the sessions, and makes the loop of coroutines."""

    def call():
        value = Value()
        variable.set(value)
        for worker in "bc":
            assert np.array_equal(rpc.rpc_sync(worker, same_later, (payload,)), payload)
        return weakref.ref(value)

    kept = contextvars.copy_context().run(call)
    until(lambda: gc.collect() is not None and kept() is None)
