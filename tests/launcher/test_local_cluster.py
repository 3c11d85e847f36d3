"""``local_cluster``: worker processes that a console or a script starts and calls."""

import pytest
from helpers.programs import is_running

pytestmark = [pytest.mark.processes, pytest.mark.slow]
SCRIPT = """
from telegrad import rpc
from telegrad.launcher import local_cluster

def twice(number):
    return 2 * number

if __name__ == "__main__":
    cluster = local_cluster(2, name="script")
    print(rpc.rpc_sync("worker1", twice, (21,)), rpc.get_worker_info(), len(cluster))
    try:
        local_cluster(1)
    except Exception as error:
        print(error)
"""


def test_a_script_whose_functions_go_by_name_and_that_does_not_close(run_python, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    output = run_python(tmp_path / "script.py")
    assert output.startswith("42 WorkerInfo(name='script', id=2) 2\n") and "is worker 'script' already" in output


UNGUARDED = """
import sys
from telegrad.launcher import local_cluster
try:
    local_cluster(2)
except RuntimeError as error:
    if __name__ != "__main__":
        raise
    print(error)
    import multiprocessing
    print(multiprocessing.active_children())
"""


def test_a_script_without_a_main_guard_is_told_at_once(run_python, tmp_path):
    (tmp_path / "script.py").write_text(UNGUARDED)
    output = run_python(tmp_path / "script.py")
    assert output.startswith("worker") and " exited with code 1 before it had begun" in output
    assert 'put the work of the script under `if __name__ == "__main__":`' in output and output.endswith("\n[]\n")


GIVES_UP = """
import os, threading
from telegrad.launcher.local_workers import PassedDescriptor, _wait_until_begun
from telegrad.launcher import ProcessRaisedException, spawn
def work(rank, begun):
    if rank:
        threading.Event().wait()
    os.pwrite(begun.number, b".", 0)
    raise TimeoutError("the others were too late")
if __name__ == "__main__":
    begun = os.memfd_create("begun")
    try:
        _wait_until_begun(spawn(work, (PassedDescriptor(begun),), 2, join=False), begun, 2)
    except ProcessRaisedException as error:
        print(error)
"""


def test_a_worker_that_gives_up_while_others_begin_says_why(run_python, tmp_path):
    (tmp_path / "script.py").write_text(GIVES_UP)
    assert "TimeoutError: the others were too late" in run_python(tmp_path / "script.py")


STUCK = """
import threading, time
from telegrad import rpc
from telegrad.launcher import local_cluster
cluster = local_cluster(1)
rpc.rpc_async("worker0", time.sleep, (1000,))
cluster.close(timeout=1)
print("closed")
"""


def test_a_worker_that_is_stuck_is_ended_by_force(run_python):
    assert run_python("-c", STUCK) == "closed\n"


INTERRUPTED = """
import time
from telegrad import rpc
from telegrad.launcher import local_cluster, local_workers
local_workers.shut_down = None  # which would wait for the call
try:
    with local_cluster(2) as cluster:
        rpc.rpc_async("worker0", time.sleep, (1000,))
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(cluster, *cluster.pids.values())
"""


def test_ctrl_c_kills_the_workers(run_python):
    *closed, first, second = run_python("-c", INTERRUPTED).split()
    assert closed == ["<LocalCluster:", "closed>"]
    assert not any(map(is_running, (first, second)))


STREAMS = """
import time
from telegrad import rpc
from telegrad.launcher import local_cluster

def endless():
    number = 0
    while True:
        yield number
        number += 1

def consume():
    with rpc.stream("worker0", endless) as numbers:
        for _ in numbers:
            time.sleep(0.001)

def generators():
    return rpc.debug_info()["generators"]

def wait_for(count):
    until = time.monotonic() + 30
    while rpc.rpc_sync("worker0", generators) != count:
        assert time.monotonic() < until
        time.sleep(0.01)

with local_cluster(2) as cluster:
    lost = rpc.rpc_async("worker1", consume)
    wait_for(1)
    cluster.kill("worker1")
    wait_for(0)
    assert cluster.died == {"worker1": "died of SIGKILL (9): killed, perhaps by the out-of-memory killer or kill -9"}
    assert repr(cluster) == "<LocalCluster: worker0, worker1 (died of SIGKILL (9))>"
    numbers = rpc.stream("worker0", endless)
    next(numbers)
    cluster.kill("worker0")
    try:
        for _ in numbers:
            pass
    except ConnectionError as error:  # WorkerLostError, or LinkCutError as long as another has not noticed
        print(error.worker)
    assert isinstance(lost.exception(), ConnectionError)
"""


def test_a_killed_process_ends_the_streams_at_both_ends(run_python):
    assert run_python("-c", STREAMS) == "worker0\n"
