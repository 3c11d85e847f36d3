"""Trace of the last calls of a worker that was killed, beside the traces of the others."""

import json
import signal

from helpers.launched import ended
from helpers.trace_rules import broken_rules
from telegrad.profiler import merge_traces

PROFILED = """
import time
from telegrad import rpc
from telegrad.errors import WorkerLostError
from telegrad.profiler import profile

def square(number):
    return number * number

def die(number):
    os.kill(os.getpid(), signal.SIGKILL)

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends the others: first it writes its trace
    with profile() as recorded:
        rpc.mesh(["worker1"]).call(square, (3,)).values()
        for number in range(3):
            rpc.rpc_sync("worker1", square, args=(number,))
        try:
            rpc.rpc_sync("worker1", die, args=(1,))
        except WorkerLostError:
            pass
    recorded.export_chrome_trace("worker0.json")
else:
    rpc.shutdown()
"""


def test_the_merged_trace_of_a_job_has_the_last_calls_of_a_killed_worker(job, tmp_path):
    _, err = ended(job(PROFILED, "-n", "2"), 128 + signal.SIGKILL)
    root = err[err.index("root cause") :]
    (last,) = tmp_path.glob("telegrad_runs/*/worker1.last.json")
    assert f"a trace of its last calls: {last.relative_to(tmp_path)}" in root
    merge_traces([tmp_path / "worker0.json", last], tmp_path / "job.json")
    rows = json.loads((tmp_path / "job.json").read_text())
    dead = [row for row in rows if row.get("pid") == 1 and row["ph"] == "b"]
    assert [row["name"] for row in dead] == ["square#remote_call"] * 4 + ["die#remote_call"]
    assert [row["args"]["ended"] for row in dead] == [True] * 4 + [False]
    calls = [row for row in rows if row["ph"] == "X" and row["pid"] == 0 and row["name"].startswith("rpc_sync#")]
    assert len(calls) == 4
    for call, served in zip(sorted(calls, key=lambda row: row["ts"]), dead[1:]):  # the first is of the mesh
        assert call["ts"] < served["ts"] < call["ts"] + call["dur"], "both have one clock"
    assert [*broken_rules(rows)] == []
