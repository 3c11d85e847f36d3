"""Every test is watched: it fails if it leaves a thread, process, file, agent, reference or autograd context behind."""

import gc
import os
import signal
import threading
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker

import pytest
from helpers import forked, programs, threads
from telegrad.rpc.extend import GrpcRpcBackendOptions, open_agents
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.rpc.lanes.sockets import KINDS
from telegrad.testing.cluster import in_process_cluster
from telegrad.testing.leaks import LEFT_BEHIND, Watch

# Tests run side by side; threads of BLAS in the processes that they start would wait for one another, spinning.
os.environ.setdefault("OMP_NUM_THREADS", "1")
START_PROCESSES = {"job", "forked_job", "run_python"}  # fixtures


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what starts processes by a fixture; what is long comes first, so that no worker has it left at the end."""
    for item in items:
        if START_PROCESSES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.processes)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="module", autouse=True)
def small_heap():
    """Collections in tests look only at what their module made, not at what came before: thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def signals_as_at_a_terminal():
    """``nohup`` and a shell's ``&`` have signals ignored, and processes that tests start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def records_of_jobs(tmp_path_factory):
    """Workers of tests leave their records for commands in a folder of the tests."""
    os.environ["TELEGRAD_JOBS_DIR"] = str(tmp_path_factory.mktemp("records") / "jobs")


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
        each.join(60)
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
        pytest.fail(f"{LEFT_BEHIND}:\n  " + "\n  ".join(leaks), pytrace=False)


socket_cluster = partial(in_process_cluster, make_lane=partial(GrpcLane, KINDS))


@pytest.fixture(params=[in_process_cluster, socket_cluster], ids=["inproc", "socket"])
def cluster(request):
    """Makes agents in this process that know each other: ``with cluster("a", "b") as (a, b)``."""
    return request.param


@pytest.fixture
def workers(cluster):
    """Three agents ``a``, ``b`` and ``c``; the test's own code is ``a``."""
    with cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


@pytest.fixture
def job(tmp_path):
    """``job(program, count, args)`` starts worker processes; none of them outlives the test."""

    def make(number, program, count, args=(), **environment):
        folder = tmp_path / str(number)
        folder.mkdir()
        return programs.Job(folder, program, count, args, **environment)

    with _jobs(make) as start:
        yield start


@contextmanager
def _jobs(make):
    """Yield a function that makes a job and gives it its number; all of them end with the block."""
    started = []

    def start(*args, **options):
        started.append(make(len(started), *args, **options))
        return started[-1]

    try:
        with programs.ending_within(300):
            yield start
    finally:
        for each in started:
            each.end()


@pytest.fixture(scope="session")
def fork_server():
    """The process from which the workers of ``forked_job`` are forked."""
    with forked.fork_server() as server:
        yield server


@pytest.fixture
def forked_job(fork_server, tmp_path):
    """``forked_job(program, count, args)`` starts worker processes that need not import Telegrad; none outlives the test."""
    with _jobs(lambda number, *args: forked.ForkedJob(fork_server, tmp_path, *args)) as start:
        yield start


@pytest.fixture
def run_python():
    """``run_python(*arguments, code=0, **options)`` runs an interpreter to its end; see ``helpers.programs``."""
    return programs.run_python
