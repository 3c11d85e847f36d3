"""Idle workers: their threads and their memory. What they import is in tests/package/test_importing.py."""

import json
import os

import pytest
from helpers.programs import PROGRAMS
from telegrad.rpc.threads.forking import LAST_VERSION, grpc_version

# Python's: the main thread, the I/O loop, gRPC's poller, and one that ran a function.
PYTHON_THREADS = 4
# gRPC's own beside its poller: a timer, and the event engine's threads with one that watches them.
NATIVE_THREADS = 2 + max(4, min(os.cpu_count(), 16))


def idle_workers(job):
    running = job("idle", 2)
    running.wait()
    return [
        json.loads(line) for line in running.output(0).splitlines() if line.startswith("{")
    ]  # else a notice of a slow start


def test_idle_workers_have_few_threads(job):
    called, caller = idle_workers(job)
    assert len(called["python_threads"]) <= PYTHON_THREADS, called
    assert len(caller["python_threads"]) < PYTHON_THREADS, "the caller runs no function, and needs no thread for it"
    for worker in (called, caller):
        assert worker["threads"] <= PYTHON_THREADS + NATIVE_THREADS, worker


@pytest.mark.slow
def test_idle_workers_take_little_memory(job):
    for worker in idle_workers(job):
        assert worker["kib"] < 75 * 1024, worker  # 59 MiB, measured with Python 3.11 and grpcio 1.85


@pytest.mark.processes
@pytest.mark.skipif(grpc_version() > LAST_VERSION, reason="this gRPC may have nothing but its event engine")
def test_no_thread_stands_between_grpcs_poller_and_its_sockets(run_python):
    switches = int(run_python(PROGRAMS / "grpc_threads.py"))
    assert switches < 100, "200 messages there and back; with the event engine there are 1,000"
