"""Fixtures of tests of references."""

import gc
import threading

import pytest
from helpers.remote import Shelf


@pytest.fixture
def tables_end_empty(workers, until):
    """Without the garbage collector: what a user dropped is gone from every worker."""
    gc.collect()
    gc.disable()
    try:
        yield
        for agent in workers:
            if not agent.closed:
                try:
                    until(lambda agent=agent: not any(agent.debug_info()["references"].values()))
                except AssertionError:
                    raise AssertionError(agent.name, agent.debug_info()["references"]) from None
    finally:
        gc.enable()
        Shelf.kept.clear()


@pytest.fixture
def gate():
    """Event at which ``wait_and_make`` waits for as long as it is not set."""
    Shelf.kept["gate"] = gate = threading.Event()
    yield gate
    gate.set()
