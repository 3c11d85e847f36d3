"""Names, addresses, folders, disks and programs that make trouble: the launcher says so, ends, and leaves nothing."""

import re
import subprocess
import sys
from contextlib import closing

import psutil
import pytest
from helpers.disks import NEEDS_ROOT, fill, small_disk
from helpers.launched import ended, pids_in
from telegrad.base.errors import RendezvousError
from telegrad.launcher.environment import reserve_port
from telegrad.launcher.nodes.member import connect
from telegrad.launcher.nodes.token import new_token
from telegrad.rpc.lanes.addresses import host_towards

pytestmark = pytest.mark.processes


@pytest.fixture
def node(job, monkeypatch):
    monkeypatch.setenv("TELEGRAD_TOKEN", new_token())

    def start(endpoint, *options, rank=0):
        many = ["--nnodes", "2", "--node-rank", str(rank), "--rdzv-endpoint", endpoint, "--rdzv-timeout", "0.5"]
        return ended(job("", *many, *options), 2)[1]

    return start


@pytest.mark.parametrize("rank", [0, 1])
def test_a_host_that_does_not_resolve(rank, node):
    assert re.search("the host 'nowhere.invalid' .*has no address: .", node("nowhere.invalid:29400", rank=rank))


def test_a_worker_names_the_host_that_does_not_resolve():
    with pytest.raises(RendezvousError, match=r"the host 'nowhere.invalid' has no address \(.+\); check its name"):
        host_towards("nowhere.invalid:1")


def test_every_address_of_a_host_that_was_tried_is_listed(monkeypatch):
    with closing(reserve_port()) as reserved:
        port = reserved.getsockname()[1]
        found = [(2, 1, 6, "", (address, port)) for address in ("127.0.0.1", "127.0.0.2")]
        monkeypatch.setattr("socket.getaddrinfo", lambda *args, **options: found)
        with pytest.raises(ConnectionError, match=r"127.0.0.1: Connection refused; 127.0.0.2: Connection refused"):
            connect("a", port)


def test_an_address_of_another_machine(node):
    err = node("192.0.2.1:29400")
    assert "node 0 cannot listen at 192.0.2.1:29400 (192.0.2.1: Cannot assign requested address)" in err
    assert "node 0 is the machine that --rdzv-endpoint names" in err


@pytest.mark.parametrize(
    ("option", "host", "why"),
    [
        ("--host", "192.0.2.1", "192.0.2.1: Cannot assign requested address"),
        ("--host", "nowhere.invalid", ""),
        ("--listen-host", "192.0.2.1", "192.0.2.1: Cannot assign requested address"),
    ],
)
def test_an_interface_that_this_machine_has_not(option, host, why, node):
    err = node("127.0.0.1:29400", option, host, rank=1)
    assert f"this machine cannot listen at {option} {host} ({why}" in err and "give one of its own addresses" in err


def test_jobs_of_one_second_in_one_folder_keep_their_logs_apart(job, tmp_path):
    both = [job("print('same name')"), job("print('same name')")]
    for each in [job("print('other name')", name="other.py"), *both]:
        ended(each, 0)
    logs = sorted(path.read_text() for path in (tmp_path / "telegrad_runs").glob("*/worker0.log"))
    assert logs == ["other name\n", "same name\n", "same name\n"]


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path) as made:
        yield made


@NEEDS_ROOT
def test_a_disk_that_fills_up_ends_a_log_and_not_the_job(disk, job):
    source = "for number in range(3000): print(number, 'x' * 90)"
    out, err = ended(job(source, "--log-dir", str(disk / "logs")), 0)
    assert "worker0 | 2999 " in out
    assert err.count("the log of worker0 ends here, it cannot be written: [Errno 28]") == 1


@NEEDS_ROOT
def test_a_disk_that_is_full_before_the_job_begins(disk, job):
    fill(disk)
    out, err = ended(job("print('ran')", "--log-dir", str(disk / "logs" / "deeper")), 0)
    assert "worker0 | ran" in out and "[Errno 28]" in err, err


def test_a_program_that_makes_itself_a_daemon_is_ended_and_told(job):
    source = """
reading, writing = os.pipe()
if os.fork():
    os.close(writing)
    print(os.read(reading, 100).decode(), end="", flush=True)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.chdir("/")
os.closerange(0, 3)
os.write(writing, f"pid {os.getpid()}\\n".encode())
signal.pause()
"""
    out, err = ended(job(source, "--grace", "0.2"), 0)
    (pid,) = pids_in(out.splitlines())
    assert f"processes that the workers had left running were ended: {pid}\n" in err
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_much_output_arrives_whole_and_none_is_fine(job, tmp_path):
    source = """
if os.environ["RANK"] == "0":
    block = (b"x" * 99 + b"\\n") * 10_000
    for _ in range(32): sys.stdout.buffer.write(block)  # os.write may write less, where a process is stopped meanwhile
else:
    os.closerange(0, 3)
"""
    out, _ = ended(job(source, "-n", "2", "--log-dir", "logs"), 0)
    assert out.count("worker0 | x") == 320_000 and "worker1" not in out
    assert (tmp_path / "logs" / "worker0.log").stat().st_size == 32_000_000
    assert (tmp_path / "logs" / "worker1.log").read_bytes() == b""


def test_a_closed_standard_output_fails_no_job(tmp_path):
    """``telegrad run ... >&-``: Python has no ``sys.stdout`` then."""
    script = tmp_path / "script.py"
    script.write_text("print('hello')")
    command = [sys.executable, "-m", "telegrad.launcher", "run", "--log-dir", str(tmp_path / "logs"), str(script)]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "1 worker finished" in done.stderr
    assert [log.read_text() for log in (tmp_path / "logs").glob("*.log")] == ["hello\n"]
