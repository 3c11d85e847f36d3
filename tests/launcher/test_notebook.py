"""``local_cluster`` in a notebook: functions of cells travel by value, and the workers end with the kernel."""

import os
import signal

import pytest
from helpers.programs import ending_within, is_running
from helpers.threads import until

nbclient = pytest.importorskip("nbclient", reason="no notebooks here: pip install nbclient ipykernel")
nbformat = pytest.importorskip("nbformat")

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
    """
import signal
from telegrad.core.futures import shield
assert signal.getsignal(signal.SIGINT) is shield, "each cell begins with Python's own handler"
assert counter.rpc_sync().add(2) == 42
""",
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


@pytest.fixture
def notebook(tmp_path):
    """``notebook(cells)`` executes them in a kernel, which ends with the test; returns the output of each cell."""
    with ending_within(150):
        document = nbformat.v4.new_notebook()
        client = nbclient.NotebookClient(document, timeout=120, resources={"metadata": {"path": str(tmp_path)}})

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
    notebook(["assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"])
    (again,) = notebook(["with local_cluster(1) as cluster: print(rpc.rpc_sync('worker0', abs, (-1,)))"])
    assert "1" in again


def test_the_workers_end_with_a_kernel_that_is_killed(notebook):
    (*_, pids) = notebook(CELLS[:2])
    (kernel,) = notebook(["print(os.getpid())"])
    os.kill(int(kernel), signal.SIGKILL)
    until(lambda: not any(map(is_running, pids.split())))


def test_an_error_of_a_cells_function_is_shown(notebook):
    notebook(CELLS[:1])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        notebook(["rpc.rpc_sync('worker0', lambda: 1 / 0)"])
