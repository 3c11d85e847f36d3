"""Workers of an elastic job that come and leave: the launcher's answers to commands, and a job that is changed as it runs."""

import json
import selectors
import socket
from contextlib import closing

import pytest
from helpers.launched import read_until, telegrad
from telegrad.base.errors import IllegalEventError
from telegrad.launcher.elastic import LauncherSocket, Scaling
from telegrad.launcher.events import Added, Begin, Exited, Start, Wake
from telegrad.launcher.restarts.history import RestartHistory
from telegrad.launcher.restarts.rules import NO_RESTARTS, RestartPolicy, RestartRules
from telegrad.launcher.restarts.workers import WorkerRestarts
from telegrad.launcher.spec import JobSpec
from telegrad.launcher.supervisor import JobPhase, Supervisor

STAYS = """
import time
from telegrad import rpc
rpc.init_rpc()
me, late = rpc.get_worker_info(), time.monotonic() + 60
print("begins", me.name, os.environ["WORLD_SIZE"], flush=True)
while not rpc.leave_requested() and not os.path.exists("over"):
    assert time.monotonic() < late
    time.sleep(0.01)
rpc.shutdown()
print("ends", flush=True)
"""


PARAMETER_SERVER = """
import time
import telegrad as tg
from telegrad import rpc
weight = tg.zeros(1)
counts = {}

def update(trainer, gradient):
    weight.sub_(gradient)
    counts[trainer] = counts.get(trainer, 0) + 1
    return weight

rpc.init_rpc()
me, late, steps = rpc.get_worker_info().name, time.monotonic() + 60, 0
if me == "ps":
    while not os.path.exists("over") or len(rpc.get_worker_infos()) > 1:
        assert time.monotonic() < late
        time.sleep(0.01)
    print("updates", sum(counts.values()), -weight.item(), flush=True)
else:
    rpc.wait_for_workers(["ps"], timeout=60)
    while not rpc.leave_requested() and not os.path.exists("over"):
        assert time.monotonic() < late
        rpc.rpc_sync("ps", update, args=(me, tg.ones(1)))
        steps += 1
        if steps == 5:
            print("learns", flush=True)
    print("steps", steps, flush=True)
rpc.shutdown()
"""


class Workers:
    """Workers of a launcher that is not there."""

    def __init__(self, *names):
        self.spec = JobSpec(__file__, workers=names)
        self.names = [*names]
        self.supervisor = Supervisor(len(names), 1.0)
        self.supervisor.handle(Begin(), 0.0)
        self.told, self.asked = [], []

    def add(self, name):
        if name not in self.names:
            self.names.append(name)
            self.spec = JobSpec(__file__, workers=tuple(self.names))
        self.supervisor.handle(Added(self.names.index(name), RestartPolicy.NEVER), 1.0)

    def ask_to_leave(self, name):
        self.asked.append(name)

    def leave(self, name, code=0):
        self.supervisor.handle(Exited(self.names.index(name), code), 2.0)

    def tell(self, line):
        self.told.append(line)


def test_to_more_workers_the_free_names_are_taken_first():
    workers = Workers("ps", "trainer0", "trainer1", "trainer2")
    scaling = Scaling(workers)
    assert scaling.answer({"leave": ["trainer1"]}) == {"started": [], "asked": ["trainer1"]}
    assert scaling.answer({"scale": {"trainer": 2}}) == {"started": [], "asked": []}, "two stay"
    workers.leave("trainer1")
    assert scaling.answer({"scale": {"trainer": 4, "ps": 1}})["started"] == ["trainer1", "trainer3"]
    assert scaling.answer({"join": "trainer"})["started"] == ["trainer4"]
    assert scaling.answer({"scale": {"trainer": 1}})["asked"] == ["trainer1", "trainer2", "trainer3", "trainer4"]
    assert workers.asked == ["trainer1", "trainer1", "trainer2", "trainer3", "trainer4"]
    assert workers.told[0] == "trainer1 is asked to leave, by a command"
    assert scaling.answer({"leave": ["trainer1"]})["asked"] == [], "it was asked before"


@pytest.mark.parametrize(
    "request_, words",
    [
        ({"scale": {"worker": 2}}, "the job has no role 'worker'; its roles are ps, trainer"),
        ({"scale": {"trainer": 0}}, "trainer=0 leaves no worker of the role"),
        ({"join": ""}, "several roles; name one with --role"),
        ({"leave": ["trainer7"]}, "no worker 'trainer7' of this launcher runs; it has ps, trainer0"),
        ({"dance": 1}, "another version of telegrad"),
    ],
)
def test_what_cannot_be_done_is_an_error(request_, words):
    workers = Workers("ps", "trainer0")
    with pytest.raises(ValueError, match=words):
        Scaling(workers).answer(request_)
    assert not workers.told and not workers.asked


@pytest.mark.parametrize("code, words", [(0, "trainer1 has finished"), (1, "its workers change no more")])
def test_a_job_that_ends_is_not_changed(code, words):
    workers = Workers("trainer0", "trainer1")
    workers.leave("trainer1", code)
    with pytest.raises(ValueError, match=words):
        Scaling(workers).answer({"join": ""})


def test_a_worker_that_was_added_counts_as_any_other():
    rules = RestartRules(RestartPolicy.ONE)
    supervisor = Supervisor(1, 1.0, WorkerRestarts([RestartPolicy.ONE], RestartHistory(rules, 1), 5.0, 3.0, 1.0))
    supervisor.handle(Begin(), 0.0)
    assert supervisor.handle(Added(1, RestartPolicy.ONE), 1.0) == [Start(1)]
    assert supervisor.handle(Exited(0, 0), 2.0) == [] and supervisor.phase is JobPhase.RUNNING
    assert supervisor.handle(Added(0, RestartPolicy.ONE), 3.0) == [Start(0)]
    with pytest.raises(IllegalEventError, match="cannot be added"):
        supervisor.handle(Added(0, RestartPolicy.ONE), 3.0)
    assert Start(1) in [*supervisor.handle(Exited(1, 3), 4.0), *supervisor.handle(Wake(), 9.0)], "it is started again"


@pytest.mark.parametrize(
    "options, words",
    [
        ({"restarts": RestartRules(RestartPolicy.ALL)}, "--elastic goes with --restart one or never"),
        ({"pin": True, "restarts": NO_RESTARTS}, "--elastic and --pin exclude each other"),
    ],
)
def test_options_that_do_not_go_with_elastic(options, words):
    with pytest.raises(ValueError, match=words):
        JobSpec(__file__, elastic=True, **options)


@pytest.mark.parametrize("sent, words", [(b"{", ""), (b"{\n", "Expecting"), (b"[1]\n", "version"), (b"x" * 70_000, "")])
def test_a_bad_request_gets_an_error_or_no_answer(sent, words, tmp_path):
    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX) as client:
        scaling = Scaling(Workers("worker0"))
        with closing(LauncherSocket(tmp_path / "socket", selector, scaling.answer)):
            client.connect(str(tmp_path / "socket"))
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            turn(selector)
            while len(selector.get_map()) > 1:
                turn(selector)
        answer = client.makefile("rb").read()
    assert words in json.loads(answer)["error"] if words else not answer


def turn(selector):
    """Take a turn of a launcher's loop."""
    ready = selector.select(10)
    assert ready
    for key, _ in ready:
        key.data()


@pytest.mark.processes
def test_workers_come_and_leave_as_commands_say(here, job):
    process = job(STAYS, "-n", "2", "--elastic")
    assert {line.split()[-2:][-1] for line in read_until(process, 2, "begins")} == {"0"}
    (found,) = json.loads(telegrad("ps", "--json"))["jobs"]
    assert telegrad("scale", found["job"], "worker=3") == "worker2: started\n"
    read_until(process, 1, "begins worker2")
    assert telegrad("leave", found["job"], "worker0") == "worker0: asked to leave\n"
    read_until(process, 1, "ends")
    (name,) = json.loads(telegrad("join", "--json"))["started"]
    assert name in ("worker0", "worker3"), "the place is free when the process has ended"
    read_until(process, 1, f"begins {name}")
    assert "no role 'trainer'" in telegrad("scale", "trainer=3", code=2)
    assert telegrad("scale", "worker=1").count(": asked to leave\n") == 2
    read_until(process, 2, "ends")
    (here / "over").touch()
    _, err = process.communicate()
    assert process.returncode == 0 and "workers finished" in err


@pytest.mark.processes
def test_trainers_of_a_parameter_server_come_and_leave_between_two_steps(here, job):
    process = job(PARAMETER_SERVER, "--roles", "ps,trainer=2", "--elastic")
    read_until(process, 2, "learns")
    assert telegrad("scale", "trainer=3") == "trainer2: started\n"
    read_until(process, 1, "learns")
    assert telegrad("scale", "trainer=1") == "trainer1: asked to leave\ntrainer2: asked to leave\n"
    left = read_until(process, 2, "steps")
    (here / "over").touch()
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    lines = [*left, *out.splitlines()]
    steps = sum(int(line.split()[-1]) for line in lines if "| steps" in line)
    (updates,) = [line.split()[-2:] for line in lines if "| updates" in line]
    assert [float(each) for each in updates] == [steps, steps], "no update is lost or doubled"


@pytest.mark.processes
def test_a_job_of_fixed_size_is_not_changed(here, job):
    process = job(STAYS, "-n", "1")
    read_until(process, 1, "begins")
    assert "has a fixed size; start it with `telegrad run --elastic`" in telegrad("scale", "worker=2", code=2)
    (here / "over").touch()
    process.communicate()
    assert process.returncode == 0
