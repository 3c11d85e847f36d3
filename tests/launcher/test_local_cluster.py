"""``local_cluster``: worker processes that a notebook, a console or a script starts and calls."""

import os
import signal
from pathlib import Path

import nbformat
import pytest
from helpers.programs import ending_within
from helpers.threads import until
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

pytestmark = [pytest.mark.processes, pytest.mark.slow]
CELLS = [
    """
import os
from telegrad import rpc
from telegrad.launcher import local_cluster
cluster = local_cluster(3)
""",
    "print(*cluster.pids.values())",
    """
class Counter:
    def __init__(self, count):
        self.count = count
    def add(self, number):
        self.count += number
        return self.count

def twice(number):
    return 2 * number, os.getpid()

result, process = rpc.rpc_sync("worker1", twice, (21,))
assert result == 42 and process == cluster.pids["worker1"]
""",
    "counter = rpc.remote('worker0', Counter, (40,))",
    "assert counter.rpc_sync().add(2) == 42",
    """
def count_there(counter):
    return counter.rpc_sync().add(1)

assert rpc.rpc_sync("worker1", count_there, (counter,)) == 43  # another worker uses the reference of an earlier cell
assert list(rpc.stream("worker1", lambda: (twice(number)[0] for number in range(3)))) == [0, 2, 4]
""",
    """
import time
cluster.kill("worker2")
try:
    rpc.rpc_sync("worker2", time.sleep, (100,))
except ConnectionError as error:
    print(error)
""",
    "assert counter.to_here().count == 43\ndel counter",
]
CLOSE = "cluster.close()\nassert repr(cluster) == '<LocalCluster: closed>'\ncluster.close()"


def is_running(pid):
    """Return whether there is a process of that id that is no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def notebook(tmp_path):
    """``notebook(cells)`` executes them in a kernel, which ends with the test; returns the output of each cell."""
    with ending_within(150):
        document = nbformat.v4.new_notebook()
        client = NotebookClient(document, timeout=120, resources={"metadata": {"path": str(tmp_path)}})

        def execute(cells):
            for source in cells:
                document.cells.append(nbformat.v4.new_code_cell(source))
                client.execute_cell(document.cells[-1], len(document.cells) - 1)
            outputs = [cell.outputs for cell in document.cells[-len(cells) :]]
            return ["".join(each.get("text", "") for each in output) for output in outputs]

        with client.setup_kernel():
            execute.client = client
            yield execute


def test_a_notebook(notebook):
    outputs = notebook(CELLS)
    assert "worker 'worker2' (rank 2) is " in outputs[6]  # gone, or cut off as long as another has not noticed
    pids = outputs[1].split()
    assert len(pids) == 3
    notebook([CLOSE])
    assert not any(map(is_running, pids))
    (again,) = notebook(["with local_cluster(1) as cluster: print(rpc.rpc_sync('worker0', abs, (-1,)))"])
    assert "1" in again


def test_the_workers_end_with_a_kernel_that_is_killed(notebook):
    (*_, pids) = notebook(CELLS[:2])
    (kernel,) = notebook(["print(os.getpid())"])
    os.kill(int(kernel), signal.SIGKILL)
    until(lambda: not any(map(is_running, pids.split())))


def test_an_error_of_a_cells_function_is_shown(notebook):
    notebook(CELLS[:1])
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebook(["rpc.rpc_sync('worker0', lambda: 1 / 0)"])


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
