"""Every test is watched: it fails if it leaves a thread, process, file, agent, reference or autograd context behind."""

import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
from helpers import threads
from telegrad.agents import make_agent
from telegrad.launcher.environment import job_environment, reserve_port
from telegrad.rpc.extend import GrpcRpcBackendOptions, open_agents
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.testing.cluster import in_process_cluster
from telegrad.testing.leaks import Watch

PROGRAMS = Path(__file__).parent / "programs"


def pytest_collection_finish():
    """Take the modules and the thousands of collected tests out of the garbage collector's sight: it is run in many tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def signals_as_at_a_terminal():
    """``nohup`` and a shell's ``&`` have signals ignored, and processes that tests start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def python_helpers():
    """Python's own helper process, and its pipe, live as long as the session: no test made them."""
    resource_tracker.ensure_running()


@pytest.fixture
def until():
    """``until(condition)`` polls until it holds."""
    return threads.until


@pytest.fixture
def thread():
    """``thread(function, *args)`` runs it in another thread, which is joined in the end."""
    started = []

    def start(function, *args):
        started.append(threading.Thread(target=function, args=args))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.join(10)
        assert not each.is_alive(), "a thread of this test did not end"


@pytest.fixture
def no_collector():
    """Only reference counts free things: what is in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def nothing_is_left():
    watch = Watch()
    yield
    leaks = watch.leaks()
    for agent in open_agents():
        if agent not in watch.agents:
            agent.close("its test ended")  # so that one test's leak is not the next one's
    if leaks:
        pytest.fail("this test left something behind:\n  " + "\n  ".join(leaks), pytrace=False)


@contextmanager
def grpc_cluster(*names, options=None):
    """``in_process_cluster`` over the gRPC lane: real sockets, one process."""
    agents = []
    try:
        for rank, name in enumerate(names):
            agents.append(make_agent(name, rank, options, lanes=[GrpcLane()], secret=b"known in one process"))
            agents[-1].listen()
        for agent in agents:
            agent.start([other.record for other in agents])
        yield agents
    finally:
        for agent in agents:
            agent.close("its cluster ended")


@pytest.fixture(params=[in_process_cluster, grpc_cluster], ids=["inproc", "grpc"])
def cluster(request):
    """Makes agents in this process that know each other: ``with cluster("a", "b") as (a, b)``."""
    return request.param


@pytest.fixture
def workers(cluster):
    """Three agents ``a``, ``b`` and ``c``; the test's own code is ``a``."""
    with cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


class Job:
    """Worker processes that run a script of tests/programs, without a launcher: one that dies does not end the others."""

    def __init__(self, folder, program, count, args=(), **environment):
        self.folder = folder
        with closing(reserve_port()) as reserved:
            shared = job_environment(count, reserved.getsockname()[1])
        self.environment = {**os.environ, **shared, "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1", **environment}
        self.script = str(PROGRAMS / f"{program}.py")
        self.processes = [self.start(rank, *args) for rank in range(count)]

    def start(self, rank, *args, **environment):
        """One more process."""
        with open(self.log(rank), "ab") as log:
            return subprocess.Popen(
                [sys.executable, self.script, *map(str, args)],
                env={**self.environment, "RANK": str(rank), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self, rank):
        return self.folder / f"worker{rank}.log"

    def output(self, rank):
        return self.log(rank).read_text()

    def outputs(self):
        return "\n".join(f"--- worker {rank}\n{self.output(rank)}" for rank in range(len(self.processes)))

    def wait(self, seconds=60.0, codes=None):
        """Wait for all; those that do not end print their stacks. Their exit codes must be 0, or ``codes``."""
        deadline = time.monotonic() + seconds
        late = []
        for rank, process in enumerate(self.processes):
            try:
                process.wait(max(deadline - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                late.append(rank)
                process.send_signal(signal.SIGABRT)
                process.send_signal(signal.SIGCONT)
                process.wait(10)
        found = [process.returncode for process in self.processes]
        assert not late, f"workers {late} did not end within {seconds} s:\n{self.outputs()}"
        assert found == (codes or [0] * len(found)), f"exit codes {found}:\n{self.outputs()}"

    def read_until(self, rank, word, seconds=60.0):
        """Wait until a worker has written a word."""
        deadline = time.monotonic() + seconds
        while word not in self.output(rank):
            alive = self.processes[rank].poll() is None or word in self.output(rank)
            assert alive and time.monotonic() < deadline, f"worker {rank} never wrote {word!r}:\n{self.outputs()}"
            time.sleep(0.01)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(10)


@pytest.fixture
def job(tmp_path):
    """``job(program, count, args)`` starts worker processes; none of them outlives the test."""
    started = []

    def start(program, count, args=(), **environment):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Job(folder, program, count, args, **environment))
        return started[-1]

    faulthandler.dump_traceback_later(150, exit=True)  # should the test itself hang
    try:
        yield start
    finally:
        faulthandler.cancel_dump_traceback_later()
        for each in started:
            each.end()
