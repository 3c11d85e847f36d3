"""``telegrad run`` with real processes: the workers' environment, the output, and that nothing is left at the end."""

import importlib.util
import json
import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest
from helpers.launched import LIMIT, STUBBORN, TOLD_WAITING, Watched, ended, pids_in, read_until

pytestmark = pytest.mark.processes


# Environment of workers, and output.


def test_workers_find_their_place_in_the_environment(job, tmp_path):
    out, err = ended(
        job(
            "import json\ntitles = [open(f'/proc/self/{name}').read() for name in ('cmdline', 'comm')]\n"
            "print(json.dumps([dict(os.environ), sys.argv[1:], titles]))",
            *("-n", "3"),
            args=["--x", "-n"],
        ),
        0,
    )
    lines = sorted(out.splitlines())
    workers = [json.loads(line.split(" | ", 1)[1]) for line in lines]
    assert [line.split(" | ")[0] for line in lines] == ["worker0", "worker1", "worker2"]
    for rank, (environment, args, (title, short)) in enumerate(workers):
        assert args == ["--x", "-n"]
        assert title.strip("\0") == f"telegrad worker{rank} of script.py" and short == f"worker{rank}\n"
        expected = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1"}
        expected |= {"TELEGRAD_WORKER": f"worker{rank}", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
        assert expected.items() <= environment.items()
    (port,) = {w["MASTER_PORT"] for w, *_ in workers}
    assert 1024 <= int(port) < 65536
    log_dir = re.search(r"logs: (.*)/\n", err)[1]
    assert err.startswith("telegrad: 3 workers finished in ")
    assert sorted(path.name for path in (tmp_path / log_dir).iterdir()) == [f"worker{i}.log" for i in range(3)]


def test_a_number_of_workers_behind_the_script_is_told(job):
    out, err = ended(job("print(sys.argv[1:])", args=["-n", "2"]), 0)
    assert out == "worker0 | ['-n', '2']\n"
    assert "telegrad: one worker: -n 2 goes to script.py; what is for telegrad run comes before the script\n" in err


LOOK_AT_CREDENTIALS = """
import pathlib, stat
folder = pathlib.Path(os.environ["TELEGRAD_CREDENTIALS"])
modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)}
secret = (folder / "secret").read_text()
assert modes == {0o700} and stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600 and len(secret) == 64
for place in (f"/proc/{os.getpid()}/environ", f"/proc/{os.getpid()}/cmdline", f"/proc/{os.getppid()}/cmdline"):
    assert secret not in pathlib.Path(place).read_text(), place
assert "TELEGRAD_SECRET" not in os.environ
print("folder", folder.parent, flush=True)
"""


@pytest.mark.parametrize("end", ["by itself", "failure", "kill -9 of the launcher"])
def test_credentials_are_private_files_that_go_with_the_job(end, job, monkeypatch, until):
    monkeypatch.setenv("TELEGRAD_SECRET", "of another job, sixteen bytes")
    how = {"by itself": "", "failure": "sys.exit(3)", "kill -9 of the launcher": TOLD_WAITING}[end]
    process = job(LOOK_AT_CREDENTIALS + how, "-n", "2")
    lines = 1 if end == "failure" else 2  # the first failure may end the other one before it says it
    folder = Path(read_until(process, lines, "folder")[-1].split()[-1])
    if end == "kill -9 of the launcher":
        assert folder.is_dir()
        process.kill()
    process.communicate()
    until(lambda: not folder.exists())


def test_two_jobs_have_different_secrets_and_ports(job):
    source = "secret = open(os.environ['TELEGRAD_CREDENTIALS'] + '/secret').read()\n"
    source += "print(secret, os.environ['MASTER_PORT'], flush=True); os.kill(os.getppid(), 0)\n"
    first, second = job(source + TOLD_WAITING), job(source + TOLD_WAITING)
    said = [read_until(process, 1, "waiting")[0].split()[2:] for process in (first, second)]
    assert said[0][0] != said[1][0] and said[0][1] != said[1][1]
    for process in (first, second):
        process.terminate()
        ended(process, 143)


def test_what_the_user_set_for_blas_stays(job, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert "worker0 | 7\n" in ended(job("print(os.environ['OMP_NUM_THREADS'])"), 0)[0]


def test_logs_hold_exactly_what_a_worker_wrote_in_order(job, tmp_path):
    source = "for i in range(2000): os.write(1 + i % 2, b'%d\\n' % i)\nos.write(1, b'\\xff\\x00\\r\\x1b[2Jend')"
    out, _ = ended(job(source, "-n", "2", "--log-dir", "logs/here"), 0)
    numbers = "".join(f"{i}\n" for i in range(2000)).encode()
    for name in ("worker0", "worker1"):
        assert (tmp_path / "logs/here" / f"{name}.log").read_bytes() == numbers + b"\xff\x00\r\x1b[2Jend"
        shown = [line.split(" | ")[1] for line in out.splitlines() if line.startswith(name)]
        assert shown == [*map(str, range(2000)), "end"]


def test_roles_name_the_workers_and_modules_run(job, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "module.py").write_text("import os, sys; print(os.environ['RANK'], sys.argv[1:])")
    process = job("", "--roles", "ps,trainer=2", "-m", name="folder.module", args=["--verbose"])
    assert sorted(ended(process, 0)[0].splitlines()) == [
        "ps       | 0 ['--verbose']",
        "trainer0 | 1 ['--verbose']",
        "trainer1 | 2 ['--verbose']",
    ]


def test_the_program_can_listen_at_master_port_before_init_rpc(job):
    """So does PyTorch's ``init_process_group``."""
    source = """
import os, socket
from telegrad import rpc
if os.environ["RANK"] == "0":
    listening = socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"])))
rpc.init_rpc()
print(rpc.rpc_sync("worker1", abs, (-7,)))
rpc.shutdown()
"""
    out, _ = ended(job(source, "-n", "2"), 0)
    assert sorted(out.splitlines()) == ["worker0 | 7", "worker1 | 7"]


def test_the_port_is_kept_for_rank_0_which_can_listen_on_it_with_grpc(job):
    source = """
import grpc, socket
from concurrent.futures import ThreadPoolExecutor
port = int(os.environ["MASTER_PORT"])
with socket.socket() as other:
    try:
        other.bind(("127.0.0.1", port))
    except OSError as error:
        print("refused to others:", error.strerror)
server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 0)])
assert server.add_insecure_port(f"127.0.0.1:{port}") == port
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    grpc.channel_ready_future(channel).result(30)
server.stop(None).wait()
print("served")
"""
    out, _ = ended(job(source), 0)
    assert {"worker0 | refused to others: Address already in use", "worker0 | served"} <= set(out.splitlines())


# Failures.


def test_the_first_failure_ends_the_others_and_is_named_first(job):
    source = f"""
if os.environ["RANK"] == "1":
    sys.stdin.read()
    raise ValueError("no such luck")
{TOLD_WAITING}"""
    _, err = ended(job(source, "-n", "3"), 1)
    lines = err.splitlines()
    assert lines[0] == "telegrad: root cause: worker1 (rank 1) exited with code 1"
    assert "    ValueError: no such luck" in lines
    assert "    worker0, worker2: ended by the launcher with SIGTERM (15)" in lines
    assert re.search(r"its log: \S+/worker1\.log", err)


def test_exit_codes_are_handed_on(job):
    _, err = ended(job("print('because', file=sys.stderr); sys.exit(42)"), 42)
    assert "worker0 (rank 0) exited with code 42\n    last line: because" in err


def test_a_killed_worker_is_the_cause_and_not_those_that_it_took_along(job, tmp_path):
    os.mkfifo(tmp_path / "link")
    source = """
if os.environ["RANK"] == "0":
    link = open("link", "w")
    print("pid", os.getpid(), flush=True)
elif os.environ["RANK"] == "1":
    open("link").read()  # until worker 0 is gone
    raise ConnectionError("worker0 is lost")
signal.pause()
"""
    process = job(source, "-n", "3")
    (pid,) = pids_in(read_until(process, 1, "pid"))
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    _, err = ended(process, 137)
    assert time.monotonic() - began < LIMIT
    assert err.startswith(
        "telegrad: root cause: worker0 (rank 0) died of SIGKILL (9): "
        "killed, perhaps by the out-of-memory killer or kill -9\n"
    )


def test_deaths_that_the_launcher_sees_together_keep_their_order(job, tmp_path):
    source = """
os.mkfifo(f"go{os.environ['RANK']}")
print("pid", os.getpid(), flush=True)
open(f"go{os.environ['RANK']}").read()
sys.exit(10 + int(os.environ["RANK"]))
"""
    process = job(source, "-n", "4")
    lines = read_until(process, 4, "pid")
    pids = {line[len("worker")]: pid for line, pid in zip(lines, pids_in(lines))}
    process.send_signal(signal.SIGSTOP)
    for rank in "2031":
        watched = Watched([pids[rank]])
        (tmp_path / f"go{rank}").write_text("")
        assert watched.all_died()
    process.send_signal(signal.SIGCONT)
    _, err = ended(process, 12)
    assert [line.split(":")[0].strip() for line in err.splitlines() if "exited with code" in line] == [
        "telegrad",
        *("worker0", "worker1", "worker3"),
    ]


def test_a_crash_shows_where_it_was(job):
    _, err = ended(job("def deep(): os.kill(os.getpid(), signal.SIGSEGV)\ndeep()"), 139)
    assert "died of SIGSEGV (11): a crash in native code" in err
    assert "Fatal Python error: Segmentation fault" in err and "in deep" in err


def test_an_interpreter_that_cannot_be_started_is_named(job, tmp_path):
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/nowhere/python\n")
    interpreter.chmod(0o755)
    _, err = ended(job("", "-n", "2", "--python", str(interpreter)), 127)
    assert "worker0 (rank 0) exited with code 127\n    last line: could not be started: [Errno 2]" in err


def test_workers_that_do_not_listen_are_killed_with_what_they_started(job, tmp_path):
    os.mkfifo(tmp_path / "go")
    source = f"if os.environ['RANK'] == '1': open('go').read(); sys.exit(3)\n{STUBBORN}\nwhile True: signal.pause()"
    process = job(source, "-n", "2", "--grace", "0.2")
    watched = Watched(pids_in(read_until(process, 4, "pid")))
    began = time.monotonic()
    (tmp_path / "go").write_text("")
    _, err = ended(process, 3)
    assert time.monotonic() - began < LIMIT
    assert watched.all_died()
    assert "root cause: worker1 (rank 1) exited with code 3" in err
    assert "    worker0: ended by the launcher with SIGKILL (9)" in err


def test_what_workers_leave_running_is_ended_and_told(job):
    source = """
child = subprocess.Popen([sys.executable, "-u", "-c", "import os, signal; print('pid', os.getpid()); signal.pause()"],
                         stdout=subprocess.PIPE, start_new_session=True)
print(child.stdout.readline().decode(), end="")
child.returncode = 0  # leave it running without a word
"""
    out, err = ended(job(source), 0)
    (pid,) = pids_in(out.splitlines())
    assert f"processes that the workers had left running were ended: {pid}\n" in err
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_helpers_that_clean_up_after_a_killed_worker_may_do_so(job):
    """multiprocessing's resource tracker removes the shared memory of a worker that was killed."""
    source = """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=8)
print("segment", memory.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    out, _ = ended(job(source), 137)
    name = re.search(r"segment (\S+)", out)[1]
    assert not os.path.exists(f"/dev/shm/{name}")


# Workers of an RPC job.

RPC = """
from telegrad import rpc
rpc.init_rpc(f"w{os.environ['RANK']}")
"""


def test_a_worker_that_ends_without_shutdown_has_not_finished(job):
    source = RPC + "if os.environ['RANK'] == '0': rpc.rpc_sync('w1', abs, (1,)); sys.exit()\nrpc.shutdown()"
    _, err = ended(job(source, "-n", "2"), 0)
    assert "1 worker finished in " in err and "the others:\n    worker0: ended without rpc.shutdown()\n" in err
    assert "CancelledError" not in err


def test_workers_that_a_script_starts_itself_are_told_to_leave_the_launcher_out(job):
    source = """
import multiprocessing
from telegrad import rpc

def work(i):
    rpc.init_rpc(f"w{i}", rank=i, world_size=2)

if __name__ == "__main__":
    processes = [multiprocessing.get_context("spawn").Process(target=work, args=(i,)) for i in range(2)]
    for process in processes: process.start()
    for process in processes: process.join()
    sys.exit(max(process.exitcode for process in processes))
"""
    out, _ = ended(job(source), 1)
    assert "cannot join its job" in out and "run it with `python` and not with `telegrad run`" in out


def test_a_script_that_is_imported_by_processes_which_it_starts_is_told_where_its_work_belongs(job):
    source = """
import multiprocessing
from telegrad import rpc
rpc.init_rpc()
process = multiprocessing.get_context("spawn").Process(target=abs, args=(1,))
process.start()
process.join()
rpc.shutdown()
"""
    out, _ = ended(job(source), 0)
    assert "came to init_rpc while it imported the script that has started it" in out and "__main__" in out


def test_pythons_own_helpers_are_no_processes_left_running(job):
    """The resource tracker ends by itself, a moment after its worker."""
    source = """
from multiprocessing import resource_tracker
resource_tracker.ensure_running()
os._exit(0)
"""
    for _ in range(3):
        assert "left running" not in ended(job(source), 0)[1]


def test_event_files_of_what_workers_log_are_in_folders_of_their_names(job, tmp_path):
    if importlib.util.find_spec("tensorboardX") is None:
        pytest.skip("tensorboardX is not installed")
    source = "import telegrad as tg\ntg.log(loss=0.5, step=int(os.environ['RANK']))\n"
    ended(job(source, *("-n", "2", "--tensorboard", "runs")), 0)
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("runs/*/events.out.tfevents.*"))
    assert [path.parts[:2] for path in files] == [("runs", "worker0"), ("runs", "worker1")]
    assert all(b"loss" in (tmp_path / path).read_bytes() for path in files)


def test_a_killed_worker_has_its_last_events_in_the_report(job):
    source = """
import telegrad as tg
from telegrad import rpc
rpc.init_rpc("server")
for step in tg.progress(range(1000), description="train"):
    tg.log(loss=1 / (step + 1), step=step)
    if step == 7:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    _, err = ended(job(source, *("-n", "1")), 128 + signal.SIGKILL)
    root = err[err.index("root cause") :]
    assert re.search(r"s before: joined the job as 'server'\n.*s before: train: \d of 1,000 done\n", root)
    assert re.search(r"s before: logged loss=0\.125 at step 7\n", root)
