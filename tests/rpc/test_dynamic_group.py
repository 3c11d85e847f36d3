"""Dynamic groups: workers join and leave while others run; names and ranks are used again."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import telegrad as tg
from helpers.threads import until
from telegrad import rpc
from telegrad.agents import init_process_group
from telegrad.agents.starting import start_grpc
from telegrad.base.errors import CollectiveError, RendezvousError, UnknownWorkerError, WorkerLostError
from telegrad.launcher.environment import reserve_port
from telegrad.rpc.extend import shut_down
from telegrad.rpc.group import dynamic_group
from telegrad.rpc.rendezvous import entering, tcp

PROGRAM = Path(__file__).parents[1] / "programs" / "member.py"


class Group:
    """Agents of one dynamic group in this process."""

    def __init__(self, address):
        self.address = address
        self.agents = []

    def join(self, name, rank, seconds=60.0, world_size=0, **options):
        given = rpc.GrpcRpcBackendOptions(init_method=self.address, init_timeout=seconds, **options)
        agent = start_grpc(name, rank, world_size, given)
        self.agents.append(agent)
        return agent


@pytest.fixture(params=["tcp", "file"])
def group(monkeypatch, tmp_path, request):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TELEGRAD_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with closing(reserve_port()) as reserved:
        port = reserved.getsockname()[1]
    made = Group(f"tcp://127.0.0.1:{port}" if request.param == "tcp" else f"file://{tmp_path}/group")
    yield made
    for agent in reversed(made.agents):
        agent.close()


over_tcp = pytest.mark.parametrize("group", ["tcp"], indirect=True)
in_file = pytest.mark.parametrize("group", ["file"], indirect=True)


def ask(agent, to):
    with agent.use():
        return rpc.rpc_sync(to, rpc.get_worker_info).name


def names(agent):
    with agent.use():
        return [info.name for info in rpc.get_worker_infos()]


def test_workers_join_and_every_one_can_call_every_other(group):
    agents = [group.join(name, rank) for rank, name in enumerate("abcd")]
    for caller in agents:
        assert names(caller) == ["a", "b", "c", "d"]
        assert [ask(caller, to) for to in "abcd"] == ["a", "b", "c", "d"]
        assert [ask(caller, rank) for rank in range(4)] == ["a", "b", "c", "d"]


def test_workers_that_join_at_the_same_time_know_one_another(group):
    group.join("w0", 0)
    threads = [threading.Thread(target=group.join, args=(f"w{rank}", rank)) for rank in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(group.agents) == 6
    for agent in group.agents:
        assert {ask(agent, f"w{rank}") for rank in range(6)} == {f"w{rank}" for rank in range(6)}


@over_tcp
def test_who_comes_before_rank_0_waits_for_it(group):
    early = threading.Thread(target=group.join, args=("b", 1))
    early.start()
    a = group.join("a", 0)
    early.join(30)
    assert ask(a, "b") == "b"


def test_a_worker_leaves_alone_and_the_others_notice(group):
    a, b, c = [group.join(name, rank) for rank, name in enumerate("abc")]
    assert ask(c, "b") == "b"
    shut_down(b, True, 60)
    until(lambda: names(a) == names(c) == ["a", "c"])
    for caller in (a, c):
        with pytest.raises(WorkerLostError, match="'b'"):
            ask(caller, "b")
    assert ask(a, "c") == "c"


@over_tcp
def test_a_worker_that_left_is_not_lost_to_those_that_its_goodbye_did_not_reach(group, caplog, monkeypatch):
    a, b, c = [group.join(name, rank) for rank, name in enumerate("abc")]
    for agent in (b, c):  # they do not connect to each other because a has left
        monkeypatch.setattr(agent.losses, "left", lambda *_: None)
    shut_down(a, True, 60)
    shut_down(c, True, 60)
    with pytest.raises(WorkerLostError, match=r"'c'.*it has shut down"):
        ask(b, "c")
    assert not [record for record in caplog.records if "is lost" in record.getMessage()]


def test_a_name_and_a_rank_are_used_again(group):
    a, b, c = [group.join(name, rank) for rank, name in enumerate("abc")]
    for _ in range(5):
        shut_down(b, True, 60)
        b = group.join("b", 1)
        assert [ask(caller, to) for caller in (a, c) for to in ("b", 1)] == ["b"] * 4
        assert [ask(b, to) for to in "abc"] == ["a", "b", "c"]
    shut_down(c, True, 60)
    assert ask(group.join("other", 2), "b") == "b"
    until(lambda: names(a) == names(b) == ["a", "b", "other"])


def test_a_reference_to_a_worker_that_left_is_not_one_to_its_successor(group):
    a, b = group.join("a", 0), group.join("b", 1)
    with a.use():
        old = rpc.remote("b", int, (7,))
        assert old.to_here() == 7
    shut_down(b, True, 60)
    group.join("b", 1)
    with a.use():
        with pytest.raises(WorkerLostError, match="'b'"):
            old.to_here()
        with pytest.raises(WorkerLostError, match="'b'"):
            old.rpc_sync().bit_length()
        fresh = rpc.remote("b", int, (8,))
        assert fresh.to_here() == 8
        assert fresh.rpc_sync().bit_length() == 4 and fresh.remote().bit_length().to_here() == 4


def test_gradients_and_profiles_cross_workers_that_joined_late(group):
    a, b, c = [group.join(name, rank) for rank, name in enumerate("abc")]
    shut_down(b, True, 60)
    b = group.join("b", 1)
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with c.use(), tg.profiler.profile() as profiled, tg.autograd_dist.context() as context:
        loss = rpc.rpc_sync("b", rpc.rpc_sync, ("a", tg.mul, (x, 3.0))).sum()
        tg.autograd_dist.backward(context, [loss])
        assert tg.autograd_dist.get_gradients(context)[x].tolist() == [3.0, 3.0]
    assert {event.node_id for event in profiled.function_events} == {a.number, b.number, c.number}


@pytest.mark.parametrize("name, rank", [("a", 3), ("b", 3), ("x", 1)])
def test_the_name_or_rank_of_a_live_worker_is_refused_without_harm(group, name, rank, monkeypatch):
    monkeypatch.setattr(dynamic_group, "GOODBYE_SECONDS", 0.1)
    monkeypatch.setattr(entering, "GOODBYE_SECONDS", 0.1)
    a, _ = group.join("a", 0), group.join("b", 1)
    with pytest.raises(RendezvousError, match="has not left"):
        group.join(name, rank)
    assert ask(a, "b") == "b" and names(a) == ["a", "b"]


def test_who_says_a_world_size_is_refused_without_harm(group):
    a = group.join("a", 0)
    with pytest.raises(RendezvousError, match=r"group is dynamic|dynamic group is there"):
        group.join("b", 1, world_size=2)
    assert ask(group.join("b", 1), "a") == "a" and names(a) == ["a", "b"]


def test_a_gathering_is_among_those_who_are_there(group):
    agents = [group.join(name, rank) for rank, name in enumerate("abc")]

    def gather(agent, into):
        with agent.use():
            into[agent.name] = rpc._all_gather(agent.rank)

    for present in (agents, agents[:2]):
        if present != agents:
            shut_down(agents[2], True, 60)
            until(lambda: names(agents[0]) == names(agents[1]) == ["a", "b"])
        found = {}
        threads = [threading.Thread(target=gather, args=(agent, found)) for agent in present]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        everybody = {agent.name: agent.rank for agent in present}
        assert found == dict.fromkeys(everybody, everybody)


@over_tcp
def test_rank_0_leaves_and_the_others_go_on(group):
    a, b, c = [group.join(name, rank) for rank, name in enumerate("abc")]
    shut_down(a, True, 60)
    until(lambda: names(b) == ["b", "c"])
    assert ask(b, "c") == "c" and ask(c, "b") == "b"
    with pytest.raises(RendezvousError, match="rank 0 did not answer"):
        group.join("d", 3, seconds=0.5)


@in_file
def test_in_a_file_workers_join_in_any_order_and_after_the_first_has_left(group):
    b, a = group.join("b", 1), group.join("a", 0)
    shut_down(b, True, 60)
    c = group.join("c", 2)
    assert (a.number, c.number) == (1, 2) and names(c) == ["a", "c"]
    shut_down(a, True, 60)
    b = group.join("b", 1)
    assert [ask(caller, to) for caller in (b, c) for to in ("b", "c", 2)] == ["b", "c", "c"] * 2
    for agent in (b, c):
        shut_down(agent, True, 60)
    last = group.join("c", 2)
    assert names(last) == ["c"] and last.number == 4, "a number is never used again"


@in_file
def test_all_may_leave_a_file_at_the_same_time_and_others_begin_anew(group):
    for round_ in range(3):
        agents = [group.join(f"w{rank}", rank) for rank in range(3)]
        assert agents[0].number == 3 * round_
        leaving = [threading.Thread(target=shut_down, args=(agent, True, 60)) for agent in agents]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join(30)


@in_file
@pytest.mark.processes
def test_the_first_worker_is_killed_and_others_join_in_the_file(group, member):
    first = member("a", 0)
    assert first.joined()
    b = group.join("b", 1)
    first.process.kill()
    a = group.join("a", 0)  # waits until the others count the first as lost
    assert ask(a, "b") == "b" and ask(b, "a") == "a" and ask(group.join("c", 2), 0) == "a"


@in_file
@pytest.mark.processes
def test_a_file_whose_only_worker_was_killed_is_told_by_its_name(group, member):
    only = member("a", 0)
    assert only.joined()
    only.process.kill()
    only.process.wait(30)
    words = (
        rf"'b' could not join .* 'a' \(process {only.process.pid}\) does not answer .* delete it, or name a new file"
    )
    with pytest.raises(RendezvousError, match=words):
        group.join("b", 1, seconds=0.5)


@in_file
def test_a_worker_whose_joining_fails_is_no_member(group, monkeypatch):
    a = group.join("a", 0)
    with monkeypatch.context() as slow:
        slow.setattr(tcp.Joining, "attempt", refuse)
        with pytest.raises(RendezvousError, match=r"'b' could not join .* 'a' .* \(no room here\)"):
            group.join("b", 1, seconds=1.0)
    assert ask(group.join("b", 1), "a") == "a" and names(a) == ["a", "b"]


async def refuse(self):
    raise ConnectionResetError("no room here")


def test_shutdown_waits_for_what_it_serves(group):
    a, b = group.join("a", 0), group.join("b", 1)
    gate = threading.Event()
    gates.append(gate)
    with a.use():
        waiting = rpc.rpc_async("b", wait_at)
    until(lambda: b.debug_info()["serving"] == 1)
    leaving = threading.Thread(target=shut_down, args=(b, True, 60))
    leaving.start()
    gate.set()
    assert waiting.wait() is True
    leaving.join(60)
    assert b.closed


class Member:
    """Worker of the group in a process of its own, which leaves when its input ends."""

    def __init__(self, group, name, rank):
        command = [sys.executable, str(PROGRAM), group.address, name, str(rank)]
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def joined(self):
        return self.process.stdout.readline() == "joined\n"

    def leave(self):
        self.process.stdin.close()
        return self.process.wait(30)


@pytest.fixture
def member(group):
    with contextlib.ExitStack() as processes:

        def start(name, rank):
            made = Member(group, name, rank)
            processes.enter_context(made.process)
            processes.callback(made.process.kill)
            return made

        yield start


@pytest.mark.processes
def test_a_killed_process_is_replaced_by_one_of_its_name(group, member):
    a = group.join("a", 0)
    c = member("c", 2)
    b = member("b", 1)
    assert b.joined()
    with a.use():
        assert rpc.rpc_sync("b", os.getpid) == b.process.pid
        under_way = rpc.rpc_async("b", time.sleep, (60,))
    b.process.kill()
    with pytest.raises(WorkerLostError, match="'b'"):
        under_way.wait()
    assert c.joined()
    last = member("b", 1)
    assert last.joined()
    with a.use():
        assert rpc.rpc_sync("c", rpc.rpc_sync, ("b", os.getpid)) == last.process.pid
    assert last.leave() == c.leave() == 0


@pytest.mark.processes
def test_user_code_hears_that_a_worker_is_killed_and_that_another_joins_with_its_name(group, member):
    a = group.join("a", 0)
    with a.use():
        heard = queue.Queue()
        rpc.on_worker_lost(lambda worker, reason: heard.put(("lost", worker.name, "process died" in reason)))
        rpc.on_worker_joined(lambda worker: heard.put(("joined", worker, rpc.get_worker_info().name)))
        first = member("b", 1)
        b = rpc.WorkerInfo("b", 1)
        assert rpc.wait_for_workers("b") == [b]
        assert heard.get(timeout=60) == ("joined", b, "a") and first.joined()
        kept = rpc.remote("b", abs, (-3,))
        assert kept.to_here() == 3
        first.process.kill()
        assert heard.get(timeout=60) == ("lost", "b", True)
        with pytest.raises(WorkerLostError, match="'b'"):
            rpc.rpc_sync("b", os.getpid)
        second = member("b", 1)
        assert rpc.wait_for_workers(["a", "b"], timeout=60) == [rpc.WorkerInfo("a", 0), b]
        assert heard.get(timeout=60) == ("joined", b, "a") and second.joined()
        assert rpc.rpc_sync("b", os.getpid) == second.process.pid
        with pytest.raises(WorkerLostError, match="'b'"):
            kept.to_here()
        assert second.leave() == 0
        until(lambda: names(a) == ["a"])
        assert heard.empty()  # it said goodbye


@pytest.mark.processes
def test_a_process_that_is_killed_while_it_joins_does_not_hold_the_others_up(group, member):
    a = group.join("a", 0)
    b = member("b", 1)
    assert b.joined()
    b.process.send_signal(signal.SIGSTOP)  # it does not hear of the next one
    c = member("c", 2)
    until(lambda: "c" in names(a), 60)
    c.process.kill()
    b.process.send_signal(signal.SIGCONT)
    until(lambda: names(a) == ["a", "b"], 60)
    with a.use():
        assert rpc.rpc_sync("b", os.getpid) == b.process.pid
    again = member("c", 2)
    assert again.joined() and again.leave() == b.leave() == 0


gates = []


def wait_at():
    return gates.pop().wait(30)


def test_process_groups_and_unknown_names_have_clear_errors(group):
    a = group.join("a", 0)
    with a.use(), pytest.raises(CollectiveError, match=r"dynamic group.*give init_process_group world_size="):
        init_process_group("rpc")
    with a.use(), pytest.raises(UnknownWorkerError, match="its workers are 'a'"):
        rpc.rpc_sync("b", abs, (1,))


def test_a_dynamic_group_needs_a_host_and_a_rank(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(RendezvousError, match="world_size is missing"):
        start_grpc("a", 0, None, rpc.GrpcRpcBackendOptions(init_method="etcd://127.0.0.1:1/nowhere"))
    with pytest.raises(RendezvousError, match="rank is missing"):
        start_grpc("a", -1, None, rpc.GrpcRpcBackendOptions(init_method="tcp://127.0.0.1:1"))
