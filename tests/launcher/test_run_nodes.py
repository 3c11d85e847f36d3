"""``telegrad run`` on several nodes, all of them on this machine: they join, share ranks and certificates, and end together."""

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from contextlib import closing

import psutil
import pytest
from helpers.launched import TOLD_WAITING, ended, read_until
from telegrad.launcher.environment import reserve_port
from telegrad.launcher.nodes.token import new_token

pytestmark = pytest.mark.processes

MEET = """
from telegrad import rpc
def who():
    return os.environ["TELEGRAD_WORKER"]
rpc.init_rpc(who())
if os.environ["RANK"] == "0":
    print([rpc.rpc_sync(rank, who) for rank in range(int(os.environ["WORLD_SIZE"]))])
    from telegrad.rpc.extend import current_agent
    agent = current_agent()
    print("tls", agent.credentials.tls.names[0].split(".")[0], "TELEGRAD_TOKEN" in os.environ)
"""


@pytest.fixture
def endpoint():
    with closing(reserve_port()) as reserved:
        return f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def node(job, endpoint, monkeypatch):
    """``node(source, *options)`` starts the launcher of one node of a job of two."""
    monkeypatch.setenv("TELEGRAD_TOKEN", new_token())

    def start(source, *options, rank=1, nodes="2"):
        number = [] if rank is None else ["--node-rank", str(rank)]
        return job(source, "--nnodes", nodes, "--rdzv-endpoint", endpoint, *number, *options)

    return start


def test_nodes_meet_and_their_workers_use_tls(node):
    last, first = node(MEET + "rpc.shutdown()", "-n", "1"), node(MEET + "rpc.shutdown()", "-n", "2", rank=0)
    out, err = ended(first, 0)
    assert "worker0 | ['worker0', 'worker1', 'worker2']" in out
    assert "worker0 | tls rank0 False" in out
    assert "node 0 of 2: ranks 0 to 1 of 3, reached at 127.0.0.1" in err and "2 workers finished" in err
    assert "node 1 of 2: rank 2 of 3" in ended(last, 0)[1]


def test_roles_and_variables_of_a_role(node):
    # In one write: the launcher shows a line that stays unfinished for a while, as under load, in two pieces.
    source = """print(f"mine {os.environ.get('OWN')} {os.environ.get('ALL')} {os.environ['LOCAL_WORLD_SIZE']}")"""
    options = ["--roles", "ps,trainer=3", "--env", "ALL=1", "--env", "ps:OWN=2"]
    nodes = [node(source, *options), node(source, *options, rank=0)]
    said = [ended(each, 0)[0] for each in nodes]
    assert sorted("".join(said).splitlines()) == [
        "ps       | mine 2 1 2",
        "trainer0 | mine None 1 2",
        "trainer1 | mine None 1 2",
        "trainer2 | mine None 1 2",
    ]


def test_an_elastic_job_begins_with_those_that_came(node):
    options = ["--join-seconds", "0.5"]
    assert "worker0 | 1" in ended(node("print(os.environ['WORLD_SIZE'])", *options, rank=None, nodes="1:3"), 0)[0]


def test_a_failure_on_one_node_is_named_on_all(node):
    source = f"""{MEET}
if os.environ["RANK"] == "2":
    raise ValueError("no such luck")
{TOLD_WAITING}"""
    first, last = node(source, "-n", "2", rank=0), node(source)
    for process, beginning in ((first, "root cause: node 1: "), (last, "root cause: ")):
        _, err = ended(process, 1)
        assert f"telegrad: {beginning}worker2 (rank 2) exited with code 1\n" in err, err
        assert "    ValueError: no such luck\n" in err
        assert re.search(r"its log: \S+/worker2\.log", err)


def test_the_node_whose_worker_was_killed_is_named_by_those_that_lost_it(node):
    source = f"""{MEET}
if os.environ["RANK"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
rpc.rpc_sync(0, signal.pause)
"""
    first, last = node(source, rank=0), node(source)
    assert "root cause: worker0 (rank 0) died of SIGKILL" in ended(first, 137)[1]
    assert "root cause: node 0: worker0 (rank 0) died of SIGKILL" in ended(last, 137)[1]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_launcher_that_is_killed_ends_the_job_on_the_other_node(killed, node):
    nodes = [node(TOLD_WAITING, rank=0), node(TOLD_WAITING)]
    for each in nodes:
        read_until(each, 1, "waiting")
    nodes[killed].kill()
    _, err = ended(nodes[1 - killed], 1)
    words = (
        "the connection to node 0's launcher is lost"
        if killed == 0
        else "the launcher at 127.0.0.1 is gone, or cut off"
    )
    assert f"root cause: node {killed}: {words}" in err, err


def test_a_node_that_cannot_write_its_logs_says_so_on_all(node):
    first, last = node(TOLD_WAITING, rank=0), node("", "--log-dir", "/proc/nowhere")
    assert "the folder '/proc/nowhere' for the logs cannot be made: No such file" in ended(last, 2)[1]
    words = "root cause: node 1: the launcher at 127.0.0.1 could not run its workers: the folder '/proc/nowhere'"
    assert words in ended(first, 1)[1]


def test_an_interruption_of_one_node_ends_all(node):
    first, last = node(TOLD_WAITING, rank=0), node(TOLD_WAITING)
    for each in (first, last):
        read_until(each, 1, "waiting")
    last.send_signal(signal.SIGINT)
    assert "root cause: node 1: interrupted by SIGINT (2)" in ended(first, 130)[1]
    assert "interrupted by SIGINT (2) after" in ended(last, 130)[1]


# -- nodes that do not come together


def test_a_node_with_another_token(node, monkeypatch):
    first = node("", "--rdzv-timeout", "3", rank=0)
    monkeypatch.setenv("TELEGRAD_TOKEN", new_token())
    stranger = node("", "--rdzv-timeout", "3")
    assert "broke the connection off" in ended(stranger, 2)[1]
    _, err = ended(first, 2)
    assert "the launcher refused a connection from 127.0.0.1: it does not know the token of this job" in err
    assert "the nodes did not come within 3 s: 1 of 2 nodes came; --node-rank 1 did not" in err


def test_strangers_at_the_launchers_port(node, endpoint):
    """Raw bytes, TLS without a proof, and a replayed proof: none gets a word, and the nodes join."""
    first = node("", rank=0)
    port = int(endpoint.rpartition(":")[2])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
                raw.settimeout(30)
                raw.recv(1000)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        except OSError:
            break
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as false:
        false.sendall((34).to_bytes(4, "little") + bytes(34))
        assert len(false.recv(100)) == 4 + 34  # the challenge
        false.sendall((64).to_bytes(4, "little") + bytes(64))
        assert false.recv(100) == b""
    last = node("")
    assert "refused a connection from 127.0.0.1: it does not know the token" in ended(first, 0)[1]
    ended(last, 0)


def test_a_port_that_is_taken(node, endpoint):
    with socket.create_server(("127.0.0.1", int(endpoint.rpartition(":")[2]))):
        _, err = ended(node("", rank=0), 2)
    assert f"node 0 cannot listen at {endpoint} (127.0.0.1: Address already in use)" in err


def test_a_host_that_does_not_answer(node, endpoint):
    _, err = ended(node("", "--rdzv-timeout", "0.5"), 2)
    assert f"node 0 did not answer at {endpoint} within 0.5 s (127.0.0.1: Connection refused)" in err


def test_a_contradiction_is_told_to_both(node):
    first, last = node("", rank=0), node("", "--name", "other")
    words = "this node was started with --name other, node 0 with worker; give all the same"
    assert f"telegrad: node 0: {words}" in ended(last, 2)[1]
    first.send_signal(signal.SIGINT)
    assert f"a node is refused, which has been told: {words}" in ended(first, 130)[1]


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed: apt-get install faketime")
def test_a_node_whose_clock_is_two_hours_behind(node, job, endpoint):
    first = node("", rank=0)
    many = ["--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", endpoint]
    library = subprocess.run(
        ["faketime", "-f", "-2h", "printenv", "LD_PRELOAD"], capture_output=True, text=True, timeout=30
    )
    behind = {**os.environ, "LD_PRELOAD": library.stdout.strip(), "FAKETIME": "-2h"}
    words = r"the clocks of this node and of node 0 differ by 1[12]\d minutes; set them \(`timedatectl`\)"
    assert re.search(words, ended(job("", *many, env=behind), 2)[1])
    first.send_signal(signal.SIGINT)
    assert re.search(words, ended(first, 130)[1])


def test_a_job_without_a_token(node, monkeypatch):
    monkeypatch.delenv("TELEGRAD_TOKEN")
    assert "needs a token; print one with `telegrad token`" in ended(node("", rank=0), 2)[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nnodes", "2"], "needs both --nnodes N and --rdzv-endpoint HOST:PORT"),
        (["--node-rank", "1"], "--node-rank is for a job on several machines"),
        (["--nnodes", "x", "--rdzv-endpoint", "a:1"], "cannot read --nnodes 'x'"),
        (["--no-python", "-m"], "-m and --no-python exclude each other"),
        (["--env", "="], "cannot read --env '='"),
    ],
)
def test_options_that_cannot_be(options, words, job):
    assert words in ended(job("", *options), 2)[1]


# -- further options


def test_programs_that_are_not_python(job, tmp_path):
    (tmp_path / "program").write_text("#!/bin/sh\necho rank $RANK $1\n")
    (tmp_path / "program").chmod(0o755)
    out, _ = ended(job("", "--no-python", name="./program", args=["x"], overwrite=False), 0)
    assert "worker0 | rank 0 x" in out


def test_a_job_file_and_a_dry_run(job, tmp_path):
    (tmp_path / "job.toml").write_text(
        'script = "script.py"\nargs = ["--epochs", "3"]\nroles = "ps,trainer=2"\npin = true\n'
        '[env]\nALL = "1"\n[env.ps]\nOWN = "a b"\n'
    )
    out, _ = ended(job("", "--job", "job.toml", "--dry-run", script_named=False), 0)
    lines = out.splitlines()
    assert lines[0].startswith("3 workers on this machine")
    assert lines[1].endswith("script.py --epochs 3") and "OWN='a b'" in lines[1] and "RANK=0" in lines[1]
    assert "OWN" not in lines[2] and "ALL=1" in lines[2] and "TELEGRAD_WORKER=trainer0" in lines[2]
    assert not (tmp_path / "telegrad_runs").exists()
    (tmp_path / "job.toml").write_text("rolls = 1")
    assert "names 'rolls', which is no option" in ended(job("", "--job", "job.toml"), 2)[1]


@pytest.mark.parametrize("start", ["--preload", "--no-preload"])
def test_pinned_workers_share_the_cores(start, job):
    out, _ = ended(job("print(sorted(os.sched_getaffinity(0)))", "--pin", "-n", "2", start), 0)
    cores = sorted(psutil.Process().cpu_affinity())
    if len(cores) < 2:
        pytest.skip("one core cannot be shared")
    half = (len(cores) + 1) // 2
    assert sorted(out.splitlines()) == [f"worker0 | {cores[:half]}", f"worker1 | {cores[half:]}"]
