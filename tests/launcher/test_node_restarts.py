"""Restarts in jobs on several nodes: what follows a round, and nodes that begin again together, all of them on this machine."""

import itertools
import signal
from contextlib import closing

import pytest
from helpers.launched import TOLD_WAITING, ended, read_until
from telegrad.launcher.environment import reserve_port
from telegrad.launcher.errors import NodeError
from telegrad.launcher.nodes.assignment import Assignment, NodeFacts, Placement
from telegrad.launcher.nodes.outcome import Outcome, Verdict
from telegrad.launcher.nodes.rounds import NextRound, NodeRounds
from telegrad.launcher.nodes.token import new_token
from telegrad.launcher.restarts.history import WorkerFailure
from telegrad.launcher.restarts.rules import RestartPolicy, RestartRules

FAILED = Outcome(137, "b1 died", failure=WorkerFailure(1, -9, ran=20.0), again=True)
ENDED = Outcome(1, again=True)
FINISHED = Outcome(0, again=True)


def rounds(most=3, number=0):
    """Return the rounds of a job whose node 1 came first: b0 and b1 have the ranks 1 and 2."""
    parts = [Placement(1, 2, ("b0", "b1"), 1, 3, "h", 1, "x"), Placement(0, 2, ("a0",), 0, 3, "h", 1, "h")]
    return NodeRounds(parts, RestartRules(RestartPolicy.ALL, most=most), 0.0, number)


@pytest.mark.parametrize("other", [ENDED, FINISHED])
def test_all_begin_again_when_the_cause_wants_it_and_no_node_forbids_it(other):
    for order in itertools.permutations([(0, FAILED), (1, other)]):
        job = rounds()
        for place, outcome in order:
            job.outcomes.add(place, outcome)
        further = job.conclude(30.0)
        assert isinstance(further, NextRound) and further.number == job.number == 1
        assert further.line == "all 3 workers are started again at once (restart 1): b1 died of SIGKILL (9)"
        assert not job.outcomes.complete and not job.outcomes.failed, "the next round begins without outcomes"


@pytest.mark.parametrize(
    "outcomes",
    [
        {0: FAILED, 1: Outcome(130, "interrupted by SIGINT (2)", gone=True)},
        {0: FAILED, 1: Outcome(1, "its launcher is gone", gone=True)},
        {0: FAILED},
        {0: Outcome(137, "b1 died"), 1: ENDED},
        {0: Outcome(0), 1: Outcome(3, "a0 failed", failure=None, again=False)},
    ],
    ids=["interrupted", "gone", "a node is silent", "a policy forbids it", "the other policy"],
)
def test_else_the_job_is_over(outcomes):
    job = rounds()
    for place, outcome in outcomes.items():
        job.outcomes.add(place, outcome)
    verdict = Verdict.from_message(job.conclude(30.0))
    assert verdict.outcome in outcomes.values() and verdict.outcome.exit_code and job.number == 0


LOST = Outcome(1, "the launcher at x is gone", gone=True, absent=True)


@pytest.mark.parametrize("other", [ENDED, FINISHED, Outcome(1, "a0 failed", lost=("b0",), again=True)])
def test_a_node_that_is_lost_may_come_back(other):
    for order in itertools.permutations([(0, LOST), (1, other)]):
        job = rounds()
        for place, outcome in order:
            assert not job.awaits
            job.outcomes.add(place, outcome)
        assert job.awaits
        assert (
            job.conclude(30.0).line == "all 3 workers are started again at once (restart 1): the launcher at x is gone"
        )


@pytest.mark.parametrize("other", [Outcome(130, "interrupted", gone=True), Outcome(3, "a0 failed")])
def test_but_not_if_another_node_forbids_it(other):
    job = rounds()
    job.outcomes.add(0, LOST)
    job.outcomes.add(1, other)
    assert not job.awaits and "node" in job.conclude(30.0)


def test_nor_after_its_time_nor_where_its_workers_have_another_policy():
    job = rounds()
    job.outcomes.add(0, LOST)
    job.outcomes.add(1, ENDED)
    assert Verdict.from_message(job.conclude(30.0, manned=False)).outcome == LOST
    parts = [Placement(0, 2, ("ps",), 0, 2, "h", 1, "h"), Placement(1, 2, ("t0",), 1, 2, "h", 1, "x")]
    job = NodeRounds(parts, RestartRules(RestartPolicy.ALL, (("ps", RestartPolicy.ONE),)), 0.0)
    job.outcomes.add(0, LOST)
    job.outcomes.add(1, ENDED)
    assert not job.awaits and Verdict.from_message(job.conclude(30.0)).outcome == LOST


def facts(host="h", rank=None, slots=1, **more):
    return NodeFacts(host, slots, rank, (3, 3), None, "worker", "1", **more)


def test_the_place_of_a_lost_node_is_for_one_with_its_number_and_workers():
    assignment = Assignment(facts(), join_seconds=5)
    for number, slots in enumerate((1, 2, 2)):
        assignment.join(facts(f"h{number}", number, slots), 0.0)
    assert assignment.complete(0.0)
    assignment.vacant += [1, 2]
    for other in (facts(rank=0), facts(rank=3, slots=2), facts(rank=1, slots=1), facts("x", slots=3)):
        with pytest.raises(NodeError, match="has begun without"):
            assignment.join(other, 1.0)
    with pytest.raises(NodeError, match="started with --restart all"):
        assignment.join(facts(rank=1, slots=2, restarts="all"), 1.0)
    assert assignment.join(facts("h2", slots=2), 1.0) == 2 and assignment.join(facts("new", 1, 2), 1.0) == 1
    assert assignment.vacant == [] and [each.host for each in assignment.joined] == ["h0", "new", "h2"]


def test_restarts_are_limited_over_all_nodes():
    job = rounds(most=2)
    for number in (1, 2, 3):
        job.outcomes.add(0, FAILED)
        job.outcomes.add(1, ENDED)
        answer = job.conclude(30.0 * number)
    assert job.number == 2 and "at most 2 times" in Verdict.from_message(answer).no_restart


def test_rounds_go_on_at_another_host_where_they_were():
    job = rounds(number=3)
    job.outcomes.add(0, FAILED)
    job.outcomes.add(1, ENDED)
    further = job.conclude(30.0)
    assert further.number == job.number == 4 and "(restart 4)" in further.line


def test_an_outcome_with_a_failure_survives_its_message():
    assert Outcome.from_message(FAILED.as_message()) == FAILED


@pytest.fixture
def node(job, monkeypatch):
    """``node(source, *options)`` starts the launcher of one node of a job of two."""
    monkeypatch.setenv("TELEGRAD_TOKEN", new_token())
    with closing(reserve_port()) as reserved:
        endpoint = f"127.0.0.1:{reserved.getsockname()[1]}"

    def start(source, *options, rank=1):
        return job(source, "--nnodes", "2", "--rdzv-endpoint", endpoint, "--node-rank", str(rank), *options)

    return start


TOGETHER = """
from telegrad import rpc
def who():
    return int(os.environ["RANK"]), int(os.environ["TELEGRAD_RESTART_COUNT"])
rpc.init_rpc(os.environ["TELEGRAD_WORKER"])
print("workers", [rpc.rpc_sync(rank, who) for rank in range(3)], flush=True)
"""


@pytest.mark.processes
@pytest.mark.parametrize("failing", [0, 2])
def test_nodes_begin_again_together(node, failing):
    source = f"{TOGETHER}\nif who() == ({failing}, 0): os.kill(os.getpid(), signal.SIGKILL)\n"
    source += "if who()[1] == 0: signal.pause()\nrpc.shutdown()"
    first, last = node(source, "-n", "2", "--restart", "all", rank=0), node(source, "--restart", "all")
    for process, workers in ((first, 2), (last, 1)):
        out, err = ended(process, 0)
        assert out.count("workers [(0, 1), (1, 1), (2, 1)]") == workers
        words = f"all 3 workers are started again at once (restart 1): worker{failing} died of SIGKILL (9)\n"
        assert f"telegrad: {words}" in err and "\nrestarts: 1\n" in err
        assert f"telegrad: {workers} worker{'s' * (workers > 1)} finished in" in err


@pytest.mark.processes
def test_each_node_restarts_its_own_workers_under_one(node):
    source = "sys.exit(os.environ['RANK'] == '1' and os.environ['TELEGRAD_RESTART_COUNT'] == '0')"
    first, last = node(source, "--restart", "one", rank=0), node(source, "--restart", "one")
    assert "restart" not in ended(first, 0)[1]
    assert "worker1 exited with code 1; it is started again" in ended(last, 0)[1]


@pytest.mark.processes
def test_one_restart_too_many_ends_the_job_on_all_nodes(node):
    source = "if os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)\nsignal.pause()"
    options = ("--restart", "all", "--max-restarts", "1")
    for process, cause in ((node(source, *options, rank=0), "node 1: worker1"), (node(source, *options), "worker1")):
        _, err = ended(process, 137)
        assert f"root cause: {cause} (rank 1) died of SIGKILL" in err
        assert "\nnot started again: this job restarts workers at most 1 time;" in err


@pytest.mark.processes
@pytest.mark.parametrize("policy, signum, code", [("all", signal.SIGTERM, 143), ("one", signal.SIGKILL, 1)])
def test_a_launcher_that_ends_is_no_reason_for_a_restart(node, policy, signum, code):
    nodes = [node(TOLD_WAITING, "--restart", policy, rank=0), node(TOLD_WAITING, "--restart", policy)]
    for each in nodes:
        read_until(each, 1, "waiting")
    nodes[1].send_signal(signum)
    out, err = nodes[0].communicate()
    assert nodes[0].returncode == code and "waiting" not in out and "again" not in err


@pytest.mark.processes
def test_a_node_that_comes_back_takes_its_ranks_again(node):
    source = f"{TOGETHER}\nif who()[1] == 0: signal.pause()\nrpc.shutdown()"
    first, last = node(source, "-n", "2", "--restart", "all", rank=0), node(source, "--restart", "all")
    read_until(last, 1, "workers")
    last.kill()
    back = node(source, "--restart", "all")
    for process, workers in ((first, 2), (back, 1)):
        out, err = ended(process, 0)
        assert out.count("workers [(0, 1), (1, 1), (2, 1)]") == workers
    assert "node 1 of 2: rank 2 of 3" in err


@pytest.mark.processes
def test_so_does_node_0_whose_launcher_was_the_host(node):
    source = f"{TOGETHER}\nif who()[1] == 0: signal.pause()\nrpc.shutdown()"
    first, last = node(source, "-n", "2", "--restart", "all", rank=0), node(source, "--restart", "all")
    read_until(last, 1, "workers")
    first.kill()
    back = node(source, "-n", "2", "--restart", "all", rank=0)
    for process, workers in ((back, 2), (last, 1)):
        out, err = ended(process, 0)
        assert out.count("workers [(0, 1), (1, 1), (2, 1)]") == workers
    assert "all workers are started again if it comes back to 127.0.0.1:" in err and "\nrestarts: 1\n" in err


@pytest.mark.processes
def test_a_host_that_does_not_come_back_in_time_ends_the_job(node):
    options = ("--restart", "all", "--rdzv-timeout", "3")
    nodes = [node(TOLD_WAITING, *options, rank=0), node(TOLD_WAITING, *options)]
    for each in nodes:
        read_until(each, 1, "waiting")
    nodes[0].kill()
    _, err = ended(nodes[1], 1)
    assert "node 0 did not answer at 127.0.0.1:" in err
    assert "root cause: node 0: the connection to node 0's launcher is lost" in err


@pytest.mark.processes
def test_one_that_does_not_come_back_in_time_ends_the_job(node):
    options = ("--restart", "all", "--rdzv-timeout", "3")
    nodes = [node(TOLD_WAITING, *options, rank=0), node(TOLD_WAITING, *options)]
    for each in nodes:
        read_until(each, 1, "waiting")
    nodes[1].kill()
    _, err = ended(nodes[0], 1)
    assert "a machine is lost: its launcher has 3 s to come back" in err
    assert "root cause: node 1: the launcher at 127.0.0.1 is gone, or cut off" in err


@pytest.mark.processes
def test_nodes_with_other_rules_are_refused(node):
    first, last = node("", "--restart", "all", rank=0), node("", "--restart", "one")
    assert "started with --restart one, node 0 with all; give all the same" in ended(last, 2)[1]
    first.terminate()
    first.communicate()


@pytest.mark.processes
def test_under_one_a_worker_takes_its_place_again_in_a_file_that_all_machines_have(node, tmp_path, monkeypatch):
    monkeypatch.setenv("TELEGRAD_INIT_METHOD", f"file://{tmp_path}/shared")
    source = """
from telegrad import rpc
@rpc.idempotent
def who():
    return os.getpid(), int(os.environ["TELEGRAD_RESTART_COUNT"])
rpc.init_rpc()
if os.environ["RANK"] == "0":
    before, _ = rpc.rpc_sync("worker1", who)
    os.kill(before, signal.SIGKILL)
    while (answer := rpc.rpc_sync("worker1", who, retry=rpc.RetryPolicy()))[0] == before:
        continue
    print("again", answer[1], flush=True)
rpc.shutdown()
"""
    first, last = node(source, "--restart", "one", rank=0), node(source, "--restart", "one")
    assert "worker0 | again 1\n" in ended(first, 0)[0]
    assert "worker1 died of SIGKILL (9); it is started again" in ended(last, 0)[1]
