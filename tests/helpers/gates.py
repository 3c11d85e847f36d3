"""A gate, and a function that waits at it until a test opens it (fixture ``closed_gate`` of the rpc tests)."""

import threading

GATE = threading.Event()


def hold():
    GATE.wait(60)
    return 1
