"""Code in other threads, and waiting for what happens in the background."""

import contextvars
import threading
import time


def until(condition, seconds=60.0):
    """Poll until ``condition()`` holds, and return its result; for what no event tells of."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.002)
    assert result, f"the condition did not hold within {seconds} s"
    return result


def elsewhere(function, *args):
    """Return ``function(*args)`` as called in another thread, with this one's context variables; fail if it does not return."""
    results = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: results.append(context.run(function, *args)))
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the call in another thread waits for this one: a deadlock"
    return results[0]
