"""``telegrad doctor``: what it finds on a machine, on the way to another, and between two."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from helpers.disks import NEEDS_ROOT, fill, small_disk
from helpers.launched import LAUNCHER, LIMIT
from telegrad.launcher.doctor import machine
from telegrad.launcher.doctor.command import examine
from telegrad.launcher.doctor.finding import Level
from telegrad.launcher.doctor.machine import check_machine, own_name
from telegrad.launcher.doctor.pair import ask, compare, listen
from telegrad.launcher.doctor.way import check_way
from telegrad.launcher.environment import reserve_port
from telegrad.launcher.errors import NodeError
from telegrad.launcher.nodes import inquiry
from telegrad.launcher.nodes.assignment import NodeFacts
from telegrad.launcher.nodes.host import Host
from telegrad.launcher.nodes.member import Membership
from telegrad.launcher.nodes.token import new_token

TOKEN = new_token().encode()


@pytest.fixture
def port():
    with closing(reserve_port()) as reserved:
        return reserved.getsockname()[1]


def test_a_machine_on_which_jobs_run_has_no_problem():
    found = list(check_machine())
    assert {finding.about for finding in found} >= {"versions", "shared memory", "open files", "certificates", "MPI"}
    assert [str(finding) for finding in found if finding.level is Level.PROBLEM] == []
    assert all(finding.advice for finding in found if finding.level is not Level.OK)


def test_too_few_files_and_too_little_memory(tmp_path):
    assert machine._files(256).advice == "allow more for jobs of many workers: ulimit -n 1024"
    assert "mount a tmpfs" in machine._shared_memory(tmp_path / "nowhere").advice


@NEEDS_ROOT
def test_credentials_that_have_no_place(tmp_path, monkeypatch):
    with small_disk(tmp_path) as disk:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(disk))
        assert machine._credentials().level is Level.OK
        fill(disk)
        found = machine._credentials()
    assert f"cannot be written in {disk}: No space left on device" in found.text
    assert f"`df {disk}`" in found.advice


def test_the_mpiexec_that_jobs_would_use_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert "no mpiexec" in machine._mpi().text
    (tmp_path / "mpiexec").touch(0o755)
    assert str(tmp_path / "mpiexec") in machine._mpi().text


def test_a_name_that_only_this_machine_understands():
    assert "on this machine only" in own_name("localhost").text
    assert "add the name to /etc/hosts" in own_name("nowhere.invalid").advice


def test_the_way_to_another_machine(port):
    assert [finding.level for finding in check_way("nowhere.invalid", 1)] == [Level.PROBLEM]
    _, refused = check_way("127.0.0.1", port)
    assert refused.level is Level.PROBLEM and "nobody listens there" in refused.text
    with socket.create_server(("127.0.0.1", port)):
        assert [finding.level for finding in check_way("127.0.0.1", port)] == [Level.OK, Level.OK]


def facts(clock=100.0, **versions):
    return {"name": "other", "versions": {"telegrad": "1", "numpy": "2", "protocol": "4", **versions}, "clock": clock}


@pytest.mark.parametrize(
    ("other", "levels", "words"),
    [
        (facts(), ["ok"], "clocks differ by 0.0 s or less"),
        (facts(telegrad="2"), ["problem", "ok"], "it has telegrad 2, this one 1"),
        (facts(protocol="9"), ["problem", "ok"], "install the same telegrad on both"),
        (facts(numpy="1"), ["warning", "ok"], "install the same numpy on both"),
        (facts(clock=130.0), ["warning"], "differs by 30 s"),
        (facts(clock=100.0 - 2 * 3600), ["problem"], "differs by -120 minutes"),
    ],
)
def test_two_machines_that_differ(other, levels, words):
    found = list(compare(facts(), other))
    assert [finding.level.value for finding in found] == levels
    assert words in "\n".join(map(str, found))


def test_two_machines_compare_themselves(port, thread, until, monkeypatch, capsys, caplog):
    monkeypatch.setattr(inquiry, "versions", lambda: {"telegrad": threading.current_thread().name})
    told = []
    listening = thread(lambda: told.extend(listen("127.0.0.1", port, TOKEN)))
    until(lambda: next(iter(list(check_way("127.0.0.1", port))[1:])).level is Level.OK)
    with pytest.raises((OSError, NodeError)):
        list(ask("127.0.0.1", port, new_token().encode()))
    found = list(ask("127.0.0.1", port, TOKEN))
    until(lambda: not listening.is_alive())
    probes = [finding for finding in told if finding.about == "the port"]
    assert {str(probe) for probe in probes} == {
        "ok       the port: 127.0.0.1 reached it, and hung up: so `telegrad doctor` begins there"
    }
    levels = [finding.level for finding in told if finding not in probes]
    assert [finding.level for finding in found] == levels == [Level.PROBLEM, Level.OK]
    waits = f"waits at 127.0.0.1:{port}, until "
    assert (
        waits in (said := capsys.readouterr().err) and f"run `telegrad doctor 127.0.0.1:{port}` with the same" in said
    )
    assert "hung up" not in caplog.text and "it does not know the token" in caplog.text


def test_a_machine_that_does_not_come_is_a_problem(port):
    (missing,) = listen("127.0.0.1", port, TOKEN, timeout=0.0)
    assert missing.level is Level.PROBLEM and missing.text == "it did not come within 0 s"


def test_the_time_that_a_machine_has_listened_is_no_skew(port, thread, until, monkeypatch):
    told, now = [], time.time
    thread(lambda: told.extend(listen("127.0.0.1", port, TOKEN)))
    until(lambda: next(iter(list(check_way("127.0.0.1", port))[1:])).level is Level.OK)
    monkeypatch.setattr(time, "time", lambda: now() + 7200)  # so much later
    assert [finding.level for finding in ask("127.0.0.1", port, TOKEN)] == [Level.OK]
    until(lambda: told)
    assert {finding.level for finding in told} == {Level.OK}


def test_a_launcher_that_asks_is_told_that_no_job_starts_there(port, thread, until):
    told = []
    thread(lambda: told.extend(listen("127.0.0.1", port, TOKEN)))
    until(lambda: next(iter(list(check_way("127.0.0.1", port))[1:])).level is Level.OK)
    facts = NodeFacts("", 1, 1, (2, 2), None, "worker", "1")
    with pytest.raises(NodeError, match="`telegrad doctor --listen` answers there, and starts no job"):
        Membership("127.0.0.1", port, TOKEN, facts, timeout=30)
    assert not [finding for finding in told if finding.about != "the port"]
    list(ask("127.0.0.1", port, TOKEN))
    until(lambda: told)


def test_the_launcher_of_node_0_answers_a_doctor(port):
    facts = NodeFacts("127.0.0.1", 1, 0, (2, 2), None, "worker", "1")
    with closing(Host("127.0.0.1", port, None, TOKEN, facts, 10.0, 30.0)):
        assert [finding.level for finding in ask("127.0.0.1", port, TOKEN)] == [Level.OK]


def test_findings_for_programs(capsys):
    assert examine(None, False, None, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is True
    first = printed["findings"][0]
    assert (
        first.keys() == {"level", "about", "text", "advice"} and first["level"] == "ok" and first["about"] == "versions"
    )


@pytest.mark.processes
def test_the_command(port):
    def doctor(*arguments):
        variables = {name: value for name, value in os.environ.items() if name != "TELEGRAD_TOKEN"}
        command = [*LAUNCHER, "doctor", *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT)

    alone = doctor()
    assert alone.returncode == 0 and re.search(r"^ok +versions: python .*telegrad .*grpcio", alone.stdout), alone
    other = doctor(f"127.0.0.1:{port}")
    assert other.returncode == 1 and "start the launcher of machine 0" in other.stdout
    assert doctor("nonsense:").returncode == 2
