"""Workers forked from a process that has imported Telegrad: programs find and do what they would in one of their own."""

import os
import signal
from contextlib import closing

import psutil
import pytest
from helpers.launched import ended, read_until
from telegrad.launcher import JobSpec
from telegrad.launcher.engines import forked

pytestmark = pytest.mark.processes
WAYS = ("--preload", "--no-preload")

FACTS = """
import __main__, gc, json, multiprocessing, os, sys, threading
names = sorted(set(vars(__main__)) - {"__annotations__", "__conditional_annotations__"})
assert vars(__main__) is globals()
print(json.dumps([
    sys.argv, __name__, __file__, sys.path[0], __spec__ and __spec__.name, type(__loader__).__name__, names,
    os.getcwd(), os.getsid(0) == os.getpid(), sys.stdout.isatty(), sys.stdin.read(), sorted(set(os.environ) - {"_"}),
    gc.isenabled(), threading.active_count(), multiprocessing.parent_process() is None, signal.getsignal(signal.SIGTERM),
]))
"""


START_AT_A_TAKEN_PORT = """
import socket
from telegrad import rpc
with socket.create_server(("127.0.0.1", 0)) as taken:
    options = rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{taken.getsockname()[1]}")
    rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=options)
"""


@pytest.mark.parametrize("name", ["script.py", "script"])
def test_a_program_finds_what_it_would_find_in_a_process_of_its_own(job, tmp_path, name):
    (tmp_path / "script.py").write_text("import signal\n" + FACTS)
    module = [] if name.endswith(".py") else ["-m"]
    source = FACTS if name.endswith(".py") else ""
    forked, own = (ended(job(source, way, *module, name=name, args=["-x", "1"]), 0)[0] for way in WAYS)
    assert forked == own and '"__main__"' in forked


ENDINGS = {
    "an error": ("def f():\n    raise KeyError('oops')\nf()", 1),
    "an error in a hook": (
        "sys.excepthook = lambda *error: print('hook', error[0], sys.last_value)\nraise KeyError",
        1,
    ),
    "no Python": ("if", 1),
    "sys.exit": ("import atexit\natexit.register(print, 'over')\nsys.exit(7)", 7),
    "sys.exit with words": ("sys.exit('words')", 1),
    "a signal": ("os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM),
    "a thread that goes on": ("import threading\nthreading.Timer(0.1, print, ['over']).start()", 0),
}


@pytest.mark.parametrize("program, code", ENDINGS.values(), ids=ENDINGS)
def test_a_program_ends_as_it_would_in_a_process_of_its_own(job, program, code):
    forked, own = (ended(job(program, way), code)[0] for way in WAYS)
    assert forked == own and "fork_server" not in forked


def test_a_worker_whose_port_is_taken_ends_without_complaints_of_grpc(job):
    """A server that was never started is freed when the interpreter ends, and then its complaint has no hook to go to."""
    out, _ = ended(job(START_AT_A_TAKEN_PORT), 1)
    assert "cannot listen at" in out.splitlines()[-1]


def test_an_interrupted_program_ends_with_the_signal(job):
    out, _ = ended(job("signal.raise_signal(signal.SIGINT)"), 128 + signal.SIGINT)
    assert out.endswith("KeyboardInterrupt\n")


def test_workers_draw_numbers_of_their_own(job):
    draw = "import random, numpy, telegrad as tg\nprint(random.random(), numpy.random.rand(), float(tg.rand(1)))"
    out, _ = ended(job(draw, "-n", "2"), 0)
    first, second = (line.split(" | ")[1].split() for line in out.splitlines())
    assert not set(first) & set(second)


IDLE = """
import gc
from telegrad import rpc
assert sum(each["collections"] for each in gc.get_stats()) < 50, "the fork server collected while it imported"
rpc.init_rpc(f"worker{os.environ['RANK']}")
assert len(os.listdir(f"/proc/{os.getppid()}/task")) == 1, "the fork server has threads, or there is none"
rpc._barrier()
memory = dict(line.split(":") for line in open("/proc/self/smaps_rollup").readlines()[1:])
print(*(int(memory[each].split()[0]) for each in ("Rss", "Pss")))
rpc._barrier()
rpc.shutdown()
"""


@pytest.mark.slow
def test_workers_share_what_was_imported(job):
    out, _ = ended(job(IDLE, "-n", "4"), 0)
    for line in out.splitlines():
        resident, share = map(int, line.split(" | ")[1].split())
        # Measured: 48 MiB and 17 MiB; 61 and 38 without.
        assert resident < 60 * 1024 and share < resident / 2, line


ENDS_WHEN_TOLD = """
count = int(os.environ["TELEGRAD_RESTART_COUNT"])
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0 if count else 3))
print("pid", os.getpid(), os.getppid(), flush=True)
signal.pause()
"""


def test_a_worker_whose_fork_server_is_killed_goes_on_and_the_successor_starts_the_next(job):
    process = job(ENDS_WHEN_TOLD, "--restart", "one")
    servers = set()
    for _ in range(2):
        *_, worker, server = map(int, read_until(process, 1, "pid")[-1].split()[3:])
        servers.add(server)
        psutil.Process(server).kill()
        while "its workers go on, and another is started" not in process.stderr.readline():
            pass
        os.kill(worker, signal.SIGUSR1)
    _, err = ended(process, 0)
    assert len(servers) == 2 and process.pid not in servers, "each worker was forked"
    assert ": worker0 exited with code 3\n" in err, "its exit code is known"


def test_a_worker_starts_an_interpreter_where_no_fork_server_can_begin(job, tmp_path):
    (tmp_path / "grpc.py").write_text("raise ImportError('not here')")
    out, err = ended(job("print('ran')", env={**os.environ, "PYTHONPATH": str(tmp_path)}), 0)
    assert out == "worker0 | ran\n"
    assert (
        "telegrad: the fork server of this job exited with code 1; workers that start now import for themselves" in err
    )


def test_a_fork_server_that_was_late_once_is_not_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(forked, "IMPORT_SECONDS", 0.05)
    monkeypatch.setattr(forked, "FORK_SERVER_END_SECONDS", 0.05)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o700)
    with open(os.devnull) as file, closing(forked.ForkServer(str(silent), [], os.environ, file.fileno())) as server:
        for _ in range(2):
            with pytest.raises(OSError, match="does not answer"):
                server.start({}, file.fileno(), ())
        assert server.exit_code(1) == forked.UNKNOWN


@pytest.mark.parametrize(
    "changes, forks",
    [({}, True), ({"preload": False}, False), ({"interpreter": "python3"}, False), ({"program": "."}, False)],
)
def test_only_source_for_this_interpreter_is_preloaded(tmp_path, monkeypatch, changes, forks):
    monkeypatch.chdir(tmp_path)
    for name in ("script.py", "__main__.py"):
        (tmp_path / name).touch()
    assert JobSpec(**{"program": "script.py", **changes}).forks is forks
