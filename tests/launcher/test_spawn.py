"""``spawn``: calls of a function in several processes, as with ``torch.multiprocessing.spawn``."""

import importlib
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from selectors import DefaultSelector

import pytest
from helpers.programs import ending_within, stop_fork_server
from telegrad.launcher import ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException, spawn
from telegrad.launcher.credentials import CredentialFolders
from telegrad.launcher.engines.engine import Engine
from telegrad.launcher.engines.functions import FunctionWorkers
from telegrad.launcher.spawned_process import SpawnedWork
from telegrad.launcher.supervisor import Supervisor

pytestmark = pytest.mark.processes

LIMIT = 120
JOB_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TELEGRAD_WORKER")

FUNCTIONS = '''
import os, signal, subprocess, sys

def report(i, folder, *names):
    from telegrad.rpc.security.handshake import job_secret
    secret = [job_secret().decode()] if "TELEGRAD_CREDENTIALS" in os.environ else []
    with open(os.path.join(folder, str(i)), "w") as file:
        file.write("\\n".join([str(os.getpid()), *(os.environ[name] for name in names), *secret]))

def fail_in_one(i, message):
    if i == 1:
        raise ValueError(message)
    signal.pause()

def raise_no_exception(i):
    raise GeneratorExit("odd")

def exit_in_one(i, code):
    if i == 1:
        sys.exit(code)
    signal.pause()

def die_in_one(i, signum):
    if i == 1:
        os.kill(os.getpid(), signum)
    signal.pause()

def log_and_die(i):
    import telegrad as tg
    tg.log(loss=0.5, step=3)
    os.kill(os.getpid(), signal.SIGKILL)

def ignore_term(i, ready):
    if i == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ready.set()
        while True: signal.pause()
    ready.wait()
    raise ValueError("over")

def expel_one(i):
    from telegrad.rpc.losses import expulsion
    if i == 1:
        expulsion.record_expulsion("worker1", "a test says so")

def wait_for(i, event):
    event.wait()

def end_one(i):
    if i == 1:
        signal.pause()

def say_and_wait(i):
    """With a child that would outlive it; what they share holds the pipe of the test open."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    os.write(1, f"pid {os.getpid()} pid {child.pid}{os.linesep}".encode())
    while True: signal.pause()
'''


@pytest.fixture(autouse=True)
def watchdog(monkeypatch):
    for name in JOB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with ending_within(LIMIT):
        yield
    assert multiprocessing.active_children() == []


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """Return a module that the new processes can import, too."""
    (tmp_path / "functions_to_spawn.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("functions_to_spawn")
    del sys.modules["functions_to_spawn"]


def reports(folder, count):
    return [(folder / str(i)).read_text().split("\n") for i in range(count)]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    return folder


@pytest.fixture
def no_server():
    """End multiprocessing's fork server, which a test may have started."""
    yield
    stop_fork_server()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("start_method", ["spawn", "fork", "forkserver"])
def test_each_process_has_its_number_and_finds_the_others(functions, folder, no_server, start_method):
    assert spawn(functions.report, (str(folder), *JOB_VARIABLES), nprocs=3, start_method=start_method) is None
    told = reports(folder, 3)
    assert len({pid for pid, *_ in told}) == 3
    for i, (_, rank, local_rank, size, host, _, name, _) in enumerate(told):
        assert (rank, local_rank, size, host, name) == (str(i), str(i), "3", "127.0.0.1", f"worker{i}")
    shared = {(port, secret) for *_, port, _, secret in told}
    assert len(shared) == 1
    assert re.fullmatch(r"\d+ [0-9a-f]{64}", " ".join(shared.pop()))
    assert not set(JOB_VARIABLES) & set(os.environ)


def test_jobs_of_several_threads_do_not_mix(functions, folder):
    folders = [folder / str(job) for job in range(3)]
    for each in folders:
        each.mkdir()
    names = ("RANK", "MASTER_PORT")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda each: spawn(functions.report, (str(each), *names), nprocs=2), folders))
    told = [[lines[1:] for lines in reports(each, 2)] for each in folders]
    assert [[rank for rank, *_ in job] for job in told] == [["0", "1"]] * 3
    assert all(job[0][1:] == job[1][1:] for job in told)
    assert len({secret for job in told for *_, secret in job}) == 3


def test_credentials_go_with_the_job(functions, folder):
    context = spawn(functions.report, (str(folder), "TELEGRAD_CREDENTIALS"), nprocs=2, join=False)
    assert context._workers.credentials.root.is_dir()
    context.join()
    (first, second) = (Path(told[1]) for told in reports(folder, 2))
    assert first.parent == second.parent == context._workers.credentials.root
    assert not first.parent.exists()


LEAVE_A_FOLDER = """
import os, signal
from telegrad.launcher.credentials import CredentialFolders
folders = CredentialFolders()
folders.add("worker0")
print(folders.root, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_jobs_left_is_removed_by_the_next(tmp_path, monkeypatch, run_python):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with closing(CredentialFolders()) as running:
        left = Path(run_python("-c", LEAVE_A_FOLDER, code=-signal.SIGKILL).strip())
        assert (left / "worker0").is_dir()
        others = tmp_path / "telegrad-of-somebody-else"
        others.mkdir()
        with closing(CredentialFolders()) as next_one:
            assert {*tmp_path.iterdir()} == {running.root, next_one.root, others}
    assert {*tmp_path.iterdir()} == {others}


def test_what_is_set_already_stays(functions, folder, monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "12345")
    monkeypatch.setenv("TELEGRAD_SECRET", "abc")
    spawn(functions.report, (str(folder), "MASTER_PORT", "TELEGRAD_SECRET", "RANK"), nprocs=2)
    assert [told[1:] for told in reports(folder, 2)] == [["12345", "abc", "0"], ["12345", "abc", "1"]]


def test_an_exception_ends_the_others_and_is_raised_here_with_its_traceback(functions):
    with pytest.raises(ProcessRaisedException, match="ValueError: no such luck") as raised:
        spawn(functions.fail_in_one, ("no such luck",), nprocs=3)
    assert isinstance(raised.value, ProcessException)
    assert raised.value.error_index == 1 and raised.value.error_pid == raised.value.pid > 0
    assert str(raised.value).startswith(f"process 1 (pid {raised.value.pid}) raised an exception")
    assert "in fail_in_one" in str(raised.value)


def test_a_long_traceback_arrives_whole(functions):
    with pytest.raises(ProcessRaisedException) as raised:
        spawn(functions.fail_in_one, ("x" * 1_000_000,), nprocs=2)
    assert "x" * 1_000_000 in str(raised.value)


def test_what_is_no_exception_is_raised_here_too(functions, capfd):
    with pytest.raises(ProcessRaisedException, match="GeneratorExit: odd"):
        spawn(functions.raise_no_exception)
    assert capfd.readouterr().err == ""


def test_an_exit_code_is_raised_here(functions):
    with pytest.raises(ProcessExitedException, match="exited with code 7") as raised:
        spawn(functions.exit_in_one, (7,), nprocs=2)
    assert (raised.value.error_index, raised.value.exit_code, raised.value.signal_name) == (1, 7, None)


def test_a_killed_process_is_named_with_its_signal(functions):
    with pytest.raises(
        ProcessExitedException, match=r"died of SIGKILL \(9\): killed, perhaps by the out-of-"
    ) as raised:
        spawn(functions.die_in_one, (signal.SIGKILL,), nprocs=2)
    assert (raised.value.error_index, raised.value.exit_code, raised.value.signal_name) == (1, -9, "SIGKILL")


def test_a_killed_process_has_its_last_events_in_the_error(functions):
    with pytest.raises(ProcessExitedException, match=r"SIGKILL (.*\n)+ .* s before: logged loss=0.5 at step 3"):
        spawn(functions.log_and_die)


def test_a_process_that_does_not_listen_is_killed_after_the_grace(functions):
    ready = multiprocessing.get_context("spawn").Event()
    context = spawn(functions.ignore_term, (ready,), nprocs=2, join=False)
    with pytest.raises(ProcessRaisedException, match="over"):
        context.join(grace_period=0.1)
    assert context.processes[0].exitcode == -signal.SIGKILL


def test_a_process_that_somebody_else_reaped_is_not_signalled(functions):
    """multiprocessing reaps all ended children whenever any thread starts one."""
    work, supervisor = SpawnedWork(functions.exit_in_one, (3,)), Supervisor(2, grace=3.0)
    with (
        closing(FunctionWorkers(multiprocessing.get_context("spawn"), work, 2, daemon=False)) as workers,
        DefaultSelector() as selector,
        closing(Engine(supervisor, workers, selector)) as engine,
    ):
        engine.begin()
        for process in workers.processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        workers.signal(0, signal.SIGTERM)
        assert engine.run() and supervisor.cause.code == -signal.SIGKILL


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("start_method", ["spawn", "fork", "forkserver"])
def test_a_worker_that_its_job_has_expelled_fails_although_its_function_returns(functions, no_server, start_method):
    with pytest.raises(ProcessExitedException, match=r"process 1 .* exited with code 1"):
        spawn(functions.expel_one, nprocs=2, start_method=start_method)


def test_join_waits_no_longer_than_it_is_told(functions):
    event = multiprocessing.get_context("spawn").Event()
    context = spawn(functions.wait_for, (event,), nprocs=2, join=False)
    assert isinstance(context, ProcessContext)
    assert len(set(context.pids())) == 2 and context.pids() == [process.pid for process in context.processes]
    assert context.join(timeout=0) is False
    assert context.join(0.01) is False
    event.set()
    assert context.join() is True
    assert context.join() is True, "again, it is over"


def test_a_failure_is_raised_by_every_join(functions):
    context = spawn(functions.exit_in_one, (7,), nprocs=2, join=False)
    for _ in range(2):
        with pytest.raises(ProcessExitedException, match="exited with code 7"):
            context.join(timeout=LIMIT)


def test_a_context_may_be_dropped_without_being_joined(functions):
    event = multiprocessing.get_context("spawn").Event()
    context = spawn(functions.wait_for, (event,), nprocs=1, join=False)
    (process,) = context.processes
    descriptors, dropped = len(os.listdir("/proc/self/fd")), weakref.ref(context)
    del context
    assert dropped() is None and len(os.listdir("/proc/self/fd")) < descriptors
    event.set()
    process.join()
    assert process.exitcode == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_processes_need_no_pickling(folder):
    (folder / "0").write_text("")
    spawn(lambda i, path: path.write_text("done"), (folder / "0",), start_method="fork")
    assert (folder / "0").read_text() == "done"


@pytest.mark.parametrize("times", [{"timeout": float("nan")}, {"grace_period": float("inf")}, {"timeout": -1}])
def test_times_that_make_no_sense_are_refused(functions, folder, times):
    context = spawn(functions.report, (str(folder),), join=False)
    with pytest.raises(ValueError, match=r"`(timeout|grace_period)` must be .*1728000"):
        context.join(**times)
    assert context.join()


PROGRAM = """
import functions_to_spawn, os, signal, sys
from telegrad.launcher import spawn
if __name__ == "__main__":
    spawn(functions_to_spawn.say_and_wait, nprocs=2)
"""


ONE_ENDS = """
import functions_to_spawn, signal
from telegrad.launcher import spawn
if __name__ == "__main__":
    context = spawn(functions_to_spawn.end_one, nprocs=2, join=False)
    context.processes[0].join()
    print(context.processes[1].pid, flush=True)
    signal.pause()
"""


def test_the_credentials_of_all_go_with_a_killed_parent(functions, tmp_path, monkeypatch):
    """Also those of a process that had ended before."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    (tmp_path / "program.py").write_text(ONE_ENDS)
    program = [sys.executable, "program.py"]
    with subprocess.Popen(program, cwd=tmp_path, text=True, stdout=subprocess.PIPE) as process:
        descriptor = os.pidfd_open(int(process.stdout.readline()))
        assert len([*place.glob("*/worker*")]) == 2
        process.kill()
        assert select.select([descriptor], [], [], LIMIT)[0]
        os.close(descriptor)
    assert [*place.iterdir()] == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_processes_and_what_they_started_die_with_their_parent(functions, tmp_path, signum):
    (tmp_path / "program.py").write_text(PROGRAM)
    program = [sys.executable, "program.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(program, cwd=tmp_path, text=True, start_new_session=True, **pipes) as process:
        said = [process.stdout.readline() for _ in range(2)]
        descriptors = [os.pidfd_open(int(pid)) for line in said for pid in re.findall(r"pid (\d+)", line)]
        assert len(descriptors) == 4
        os.killpg(process.pid, signum)  # SIGINT as from a terminal
        for descriptor in descriptors:
            assert select.select([descriptor], [], [], LIMIT)[0]
            os.close(descriptor)
        _, err = process.communicate()
    assert process.returncode == -signum
    assert ("KeyboardInterrupt" in err) == (signum == signal.SIGINT)


INTERACTIVE = """
import multiprocessing, os
from telegrad import rpc
from telegrad.launcher import spawn

class Thing:
    def __init__(self, number):
        self.number = number

def add_one(thing):
    return Thing(thing.number + 1)

def work(i, thing, event, connection):
    rpc.init_rpc(f"w{i}")
    if i == 0:
        connection.send(rpc.rpc_sync("w1", add_one, (thing,)).number)
        event.set()
    rpc.shutdown()

context = multiprocessing.get_context("spawn")
event, (ours, theirs) = context.Event(), context.Pipe()
spawn(work, (Thing(4), event, theirs), nprocs=2)
print("got", ours.recv(), event.is_set())
"""


@pytest.mark.parametrize("how", ["standard input", "-c"])
def test_what_an_interactive_main_defines_is_sent_by_value(tmp_path, how, run_python):
    arguments, given = (["-"], INTERACTIVE) if how == "standard input" else (["-c", INTERACTIVE], None)
    assert run_python(*arguments, input=given, cwd=tmp_path) == "got 5 True\n"


def test_the_parent_can_be_a_worker_of_the_jobs_that_it_started(tmp_path, run_python):
    """Two jobs at a time, each with its own secret, and one whose port the user has chosen."""
    (tmp_path / "program.py").write_text("""
import os
from telegrad import rpc
from telegrad.launcher import spawn
from telegrad.launcher.environment import reserve_port

def work(i):
    rpc.init_rpc(f"w{i + 1}", rank=i + 1, world_size=2)
    rpc.shutdown()

def join(context, **options):
    rpc.init_rpc("w0", rank=0, world_size=2, rpc_backend_options=rpc.GrpcRpcBackendOptions(**options))
    print(rpc.rpc_sync("w1", os.getpid) in context.pids(), flush=True)
    rpc.shutdown()
    context.join()

if __name__ == "__main__":
    first, second = (spawn(work, join=False) for _ in range(2))
    for context in (second, first):
        join(context, init_method=context.init_method)
    with reserve_port() as port:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1])}
    join(spawn(work, join=False))
""")
    assert run_python("program.py", cwd=tmp_path, timeout=2 * LIMIT) == "True\n" * 3
