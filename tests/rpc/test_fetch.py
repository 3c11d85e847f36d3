"""``Buffer.fetch``: one array to many readers, in pieces from its owner and from those that have them."""

import random
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from helpers.lanes import grpc, in_process, tcp, unix
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError, WorkerLostError
from telegrad.core.futures import Future
from telegrad.rpc.buffers import fetch, ranges
from telegrad.rpc.buffers.copies import lent_copies
from telegrad.rpc.buffers.fetch import Fetch
from telegrad.rpc.buffers.fetch_plan import ORIGINAL, OWNER_PIECES, READER_PIECES, FetchPlan
from telegrad.rpc.buffers.owned import OwnedBuffers
from telegrad.rpc.buffers.sources import SourceAsk, Sources
from telegrad.testing import in_process_cluster

SENT = ["tcp"]  # without lanes of one machine nothing is mapped
KEPT = {}

# -- the plan


def test_readers_that_begin_together_get_different_pieces():
    plan = FetchPlan(32, 0)
    for worker in (1, 2, 3):
        plan.begin((worker, 0))
    got = [plan.next((worker, 0)) for worker in (1, 2, 3)]
    pieces = [piece for found in got for piece, _ in found]
    assert [len(found) for found in got] == [READER_PIECES, READER_PIECES, 0] and len(set(pieces)) == OWNER_PIECES
    plan.arrived((1, 0), 0)
    assert plan.next((3, 0)) == [(8, (0, ORIGINAL)), (0, (1, 0))]  # what none has, then what one has


def test_a_source_that_failed_is_passed_over_until_it_has_more():
    plan = FetchPlan(3, 0)
    plan.begin((1, 0))
    plan.next((1, 0))
    for piece in (0, 1):
        plan.arrived((1, 0), piece)
    plan.begin((2, 7))
    assert plan.next((2, 7)) == [(0, (1, 0)), (1, (1, 0))]
    plan.failed((2, 7), 0)
    assert plan.next((2, 7)) == [(0, (0, ORIGINAL))]
    plan.arrived((1, 0), 2)
    assert plan.next((2, 7)) == [(2, (1, 0))]


def test_copies_that_are_gone_lend_nothing():
    plan = FetchPlan(1, 0)
    for copy, live in ((0, [0]), (1, [0, 1]), (2, [2])):
        plan.keep_only(1, live)
        plan.begin((1, copy))
        assert plan.next((1, copy)) == [(0, (0, ORIGINAL))]  # never from the same worker
        plan.arrived((1, copy), 0)
    plan.begin((2, 0))
    assert plan.next((2, 0)) == [(0, (1, 2))]
    plan.lost(1)
    assert plan.knows((2, 0)) and not plan.complete((2, 0)) and not plan.knows((1, 2))
    plan.failed((2, 0), 0)
    assert plan.next((2, 0)) == [(0, (0, ORIGINAL))]


def test_a_reader_that_starves_is_served_by_the_owner():
    plan = FetchPlan(1, 0)
    for worker in (1, 2):
        plan.begin((worker, 0))
    assert plan.next((1, 0)) and not plan.next((2, 0))
    assert plan.next((2, 0), starved=True) == [(0, (0, ORIGINAL))]
    plan.only((2, 0), [])
    assert plan.next((2, 0), starved=True) == [(0, (0, ORIGINAL))]


# -- owner and readers, in any order of events


class World:
    """An owner, readers, and messages between them, which are delivered in an order that is drawn.

    Args:
        seed, count, workers: of the draw, of pieces, and the numbers of the readers.
        machines: on so many machines they share copies; 0 for none.
        fails: share of copies that cannot be mapped.
        loses: share of requests to the owner that are lost, and of its answers.
        hurries: how often, per event, a reader gives up a request: one that comes later is not served, an answer not read.
    """

    def __init__(self, seed, count, workers, machines=0, fails=0.0, loses=0.0, hurries=0.0):
        self.machines, self.fails, self.loses, self.hurries = machines, fails, loses, hurries
        self.draw, self.count = random.Random(seed), count
        self.sources = Sources(count, 0)
        self.events, self.sent, self.has = [], [], {worker: set() for worker in workers}
        self.dead, self.readers, self.asks = set(), {}, []
        for worker in workers:
            self.readers[worker] = Fetch(count, Messages(self, worker))

    def later(self, event):
        self.events.append(event)

    def run(self, each=lambda: None):
        for reader in self.readers.values():
            self.later(reader.begin)
        for _ in range(100_000):
            if not self.events:
                waiting = [ask for ask in self.asks if not ask.done() and ask.worker not in self.dead]
                if not waiting:
                    return
                for ask in waiting:  # time passes
                    self.later(lambda ask=ask: ask.try_fail(RpcTimeoutError("slow")))
            self.draw.shuffle(self.events)
            self.events.pop()()
            if self.draw.random() < self.hurries and self.asks:
                self.draw.choice(self.asks).try_fail(RpcTimeoutError("slow"))
            each()
        raise AssertionError("it does not end")

    def arrive(self, event):
        """Let a request or an answer arrive some time, if it is not lost."""
        if self.draw.random() >= self.loses:
            self.later(event)

    def lose(self, worker):
        self.dead.add(worker)
        self.later(lambda: self.sources.lost(worker))


class Ask(Future):
    """Answer to a reader, which is the owner's call, too."""

    def reply(self, value):
        self.world.arrive(lambda: None if self.worker in self.world.dead or self.done() else self.set_result(value))

    def try_fail(self, error):
        if not self.done():
            self.set_exception(error)


class Messages:
    """Messages of one reader of a ``World``."""

    def __init__(self, world, worker):
        self.world, self.worker = world, worker

    def ask(self, news):
        world, answer = self.world, Ask()
        answer.world, answer.worker = world, self.worker
        live, machine = ([0], b"") if news.first else (None, b"")
        if news.first and world.machines:
            machine = b"%d" % (self.worker % world.machines)
        place = ("place of", self.worker) if news.whole else None
        ask = SourceAsk(0, 0, live, machine, news.arrived, news.failed, news.held, place, news.mapped)
        if self.worker not in world.dead:
            world.asks.append(answer)
            world.arrive(
                lambda: self.worker in world.dead or answer.done() or world.sources.asked(self.worker, ask, answer)
            )
        return answer

    def read(self, piece, source):
        world, answer = self.world, Future()
        world.sent.append(source[0])

        def come():
            if source[0] in world.dead:
                answer.set_exception(WorkerLostError("lost", str(source[0])))
            elif source[0] and piece not in world.has[source[0]]:
                answer.set_exception(RpcError("it has no such piece"))
            elif self.worker not in world.dead:
                answer.set_result(piece)

        world.later(come)
        return answer

    def accept(self, piece, answer):
        assert piece == answer
        self.world.has[self.worker].add(piece)

    def map(self, place):
        world = self.world
        if place[1] in world.dead or world.draw.random() < world.fails:
            return False
        assert len(world.has[place[1]]) == world.count
        world.has[self.worker] = set(range(world.count))
        return True

    def withdraw(self, asked):
        pass

    def leave(self):
        self.world.sources.left((self.worker, 0))

    def late(self):
        return None


@pytest.mark.parametrize("seed", range(12))
def test_every_reader_gets_all_pieces_and_the_owner_sends_each_once(seed):
    world = World(seed, 30, range(1, 9))
    world.run()
    assert all(reader.over.done() and len(world.has[worker]) == 30 for worker, reader in world.readers.items())
    assert world.sent.count(0) == 30 and len(world.sent) == 8 * 30


@pytest.mark.parametrize("seed", range(20))
def test_requests_and_answers_that_are_lost(seed):
    world = World(seed, 12, range(1, 7), machines=seed % 3, fails=0.2, loses=0.1)
    world.run()
    assert all(reader.over.value() is None and len(world.has[worker]) == 12 for worker, reader in world.readers.items())
    assert not world.sources._plan._sends and not world.sources._waiting and not world.sources._kept


@pytest.mark.parametrize("seed", range(12))
def test_requests_and_answers_that_are_late(seed):
    world = World(seed, 12, range(1, 7), machines=1 + seed % 2, fails=0.5, hurries=0.3)
    world.run()
    assert all(reader.over.value() is None and len(world.has[worker]) == 12 for worker, reader in world.readers.items())
    assert not world.sources._plan._sends and not world.sources._waiting and not world.sources._kept


def lose_in_the_middle(world, readers, count):
    """Run a world in which some readers are lost, and check that the others get all 20 pieces."""
    dying = world.draw.sample(readers, count)

    def lose():
        if dying and world.draw.random() < 0.02:
            world.lose(dying.pop())

    world.run(lose)
    for worker, reader in world.readers.items():
        if worker not in world.dead:
            assert reader.over.done() and reader.over.value() is None and len(world.has[worker]) == 20


@pytest.mark.parametrize("seed", range(40))
def test_losses_of_readers_in_the_middle(seed):
    world = World(seed, 20, range(1, 7))
    lose_in_the_middle(world, range(1, 7), 3)
    assert world.sent.count(0) <= 20 * 4


@pytest.mark.parametrize("seed", range(12))
def test_one_reader_of_each_machine_fetches(seed):
    world = World(seed, 30, range(1, 9), machines=2)
    world.run()
    assert all(reader.over.done() and len(world.has[worker]) == 30 for worker, reader in world.readers.items())
    assert world.sent.count(0) == 30 and len(world.sent) == 2 * 30


@pytest.mark.parametrize("seed", range(40))
def test_losses_and_copies_that_cannot_be_mapped(seed):
    world = World(seed, 20, range(1, 9), machines=3, fails=0.3)
    lose_in_the_middle(world, range(1, 9), 4)
    sources = world.sources
    assert not sources._kept or any(reader[0] in world.dead for reader in sources._kept)


@pytest.fixture
def asked():
    """Return a function that asks ``Sources`` of one piece for a worker on machine ``m``, and returns the answers to come."""
    sources = Sources(1, 0)

    def ask(worker, **news):
        call = SimpleNamespace(answers=[])
        call.reply = call.answers.append
        first = {"live": [0], "machine": b"m"} if not news or news.get("mapped") is False else {}
        sources.asked(worker, SourceAsk(0, 0, **first, **news), call)
        return call.answers

    return ask


FROM_OWNER = [(0, (0, ORIGINAL))]


def test_a_reader_keeps_its_copy_until_the_others_of_its_machine_have_mapped_it(asked):
    assert asked(1) == [FROM_OWNER]
    waits, also = asked(2), asked(3)
    last = asked(1, arrived=(0,), place="its place")
    assert waits == also == ["its place"] and last == []
    assert asked(2, mapped=True) == [[]] and last == []
    assert asked(3, mapped=False) == [[(0, (1, 0))]] and last == [[]]  # it fetches


def test_one_of_those_that_are_told_of_a_copy_that_is_gone_fetches(asked):
    asked(1)
    assert asked(1, arrived=(0,), place="old") == [[]]  # and drops its copy
    assert [asked(worker) for worker in (2, 3, 4)] == [["old"]] * 3
    assert asked(2, mapped=False) == [[(0, (1, 0))]] and asked(2, failed=(0,)) == [FROM_OWNER]
    waits, also = asked(3, mapped=False), asked(4, mapped=False)
    assert waits == also == []
    last = asked(2, arrived=(0,), place="new")
    assert waits == also == ["new"] and last == []
    assert asked(3, mapped=True) == [[]] and last == []
    assert asked(4, mapped=False) == [[(0, (2, 0))]] and last == [[]]  # it has tried twice


def test_a_late_word_of_a_copy_that_cannot_be_mapped_changes_nothing(asked):
    asked(1)
    asked(1, arrived=(0,), place="old")
    assert asked(2) == ["old"] and asked(3) == ["old"]
    assert asked(3, mapped=False) == [[(0, (1, 0))]]
    waits = asked(2)  # the owner heard nothing of its trial
    assert waits == [] and asked(2, mapped=False) == [] and waits == [[]]  # still waits for the third


def test_a_reader_fetches_if_the_first_of_its_machine_stands_still():
    sources, answers = Sources(2, 0), []

    def ask(worker, **news):
        sources.asked(
            worker, SourceAsk(0, 0, **news), SimpleNamespace(reply=lambda found: answers.append((worker, found)))
        )

    ask(1, live=[0], machine=b"m")
    ask(2, live=[0], machine=b"m")
    ask(1, arrived=(0,))
    ask(2, under_way=[])  # it has got something since
    assert answers == [(1, [(0, (0, ORIGINAL)), (1, (0, ORIGINAL))]), (2, [])]
    ask(2, under_way=[])
    assert answers[2:] == [(2, []), (2, [(0, (1, 0))])]


# -- real agents


def keep(values, sealed=True):
    KEPT["buffer"] = rpc.Buffer(values)
    if sealed:
        KEPT["buffer"].seal()
    return KEPT["buffer"]


def fetch_there(buffer, name):
    KEPT[name] = buffer.fetch()
    return float(KEPT[name].sum())


def free_there():
    KEPT["buffer"].free()


@pytest.fixture(params=[(in_process, None), (unix, None), (in_process, SENT), (tcp, SENT), (grpc, SENT)])
def cluster(request, tmp_path, monkeypatch):
    """Agents a, b, c and d; a is the current one. Pieces are small, so that a buffer has many."""
    make_lane, lanes = request.param
    monkeypatch.setattr(fetch, "FETCH_PIECE_BYTES", 80_000)
    options = rpc.GrpcRpcBackendOptions(lanes=lanes)
    with (
        in_process_cluster("a", "b", "c", "d", make_lane=make_lane(tmp_path), options=options) as agents,
        agents[0].use(),
    ):
        yield agents
    KEPT.clear()


def test_many_readers_at_once(cluster):
    values = tg.arange(100_000)
    buffer = rpc.rpc_sync("b", keep, args=(values,))
    there = [rpc.rpc_async(name, fetch_there, args=(buffer, name)) for name in "bcd"]
    mine = buffer.fetch_async().wait()
    assert [future.wait() for future in there] == [float(values.sum())] * 3 and tg.equal(mine, values)
    mine.zero_()  # its own pages
    assert tg.equal(buffer.fetch(), values) and tg.equal(KEPT["c"], values) and tg.equal(buffer.read(), values)


def test_what_cannot_be_fetched_is_named(cluster):
    buffer = rpc.rpc_sync("b", keep, args=(tg.ones(30_000), False))
    with pytest.raises(RpcError, match=r"of (worker )?'b'.* may still change, so that it cannot be fetched"):
        buffer.fetch()
    with pytest.raises(RpcError, match="is sealed by its owner"):
        buffer.seal()
    rpc.rpc_sync("b", rpc.Buffer.seal, args=(buffer,))
    with pytest.raises(RpcError, match=r"is sealed: it cannot be written to"):
        buffer.write_from(tg.zeros(1))
    kept = buffer.fetch()
    rpc.rpc_sync("b", free_there)
    with pytest.raises(RpcError, match=r"buffer 0 of worker 'b' was freed"):
        buffer.fetch()
    assert kept.sum().item() == 30_000
    assert rpc.rpc_sync("c", keep, args=(0,)).fetch().shape == (0,)


@pytest.fixture
def sending(tmp_path, monkeypatch):
    """Agents a, b, c and d over TCP, and the names of the owner and of lenders, once for each piece that they have sent."""
    monkeypatch.setattr(fetch, "FETCH_PIECE_BYTES", 80_000)
    sent = []
    read = OwnedBuffers._read
    monkeypatch.setattr(OwnedBuffers, "_read", lambda self, call: sent.append("owner") or read(self, call))
    options = rpc.GrpcRpcBackendOptions(lanes=SENT)
    with in_process_cluster("a", "b", "c", "d", make_lane=tcp(tmp_path), options=options) as agents, agents[0].use():
        yield agents, sent
    KEPT.clear()


def test_later_readers_get_it_from_those_that_have_it(sending):
    agents, sent = sending
    buffer = rpc.rpc_sync("b", keep, args=(np.arange(100_000),))
    assert tg.equal(buffer.fetch(), tg.arange(100_000)) and len(sent) == 10
    KEPT["a"] = buffer.fetch()  # the first copy is gone: from the owner
    assert len(sent) == 20
    rpc.rpc_sync("c", fetch_there, args=(buffer, "c"))
    rpc.rpc_sync("d", fetch_there, args=(buffer, "d"))
    assert len(sent) == 20 and tg.equal(KEPT["d"], tg.arange(100_000))
    del KEPT["c"], KEPT["d"], KEPT["a"]
    until(lambda: not any(len(lent_copies(agent)._copies) for agent in (agents[0], *agents[2:])))
    rpc.rpc_sync("c", fetch_there, args=(buffer, "c"))  # told to ask those, which say that they have it no more
    assert len(sent) == 30 and tg.equal(KEPT["c"], tg.arange(100_000))


def test_readers_of_one_other_machine_share_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "FETCH_PIECE_BYTES", 80_000)
    monkeypatch.setattr(ranges, "map_memory", lambda *_: None)  # as if the owner were on another machine
    sent, read = [], OwnedBuffers._read
    monkeypatch.setattr(OwnedBuffers, "_read", lambda self, call: sent.append("owner") or read(self, call))
    with in_process_cluster("a", "b", "c", "d", make_lane=unix(tmp_path)) as agents, agents[0].use():
        buffer = rpc.rpc_sync("b", keep, args=(np.arange(100_000),))
        there = [rpc.rpc_async(name, fetch_there, args=(buffer, name)) for name in "cd"]
        KEPT["a"] = mine = buffer.fetch()
        assert [future.wait() for future in there] == [float(np.arange(100_000).sum())] * 2 and len(sent) == 10
        mine.zero_()  # its own pages
        assert tg.equal(buffer.fetch(), tg.arange(100_000)) and tg.equal(KEPT["c"], KEPT["d"]) and len(sent) == 10
        for _ in range(3):  # the first reader's copy is gone each time, which the owner does not know
            for name in ("a", "c", "d"):
                del KEPT[name]
            mine = None
            until(lambda: not any(len(lent_copies(agent)._copies) for agent in (agents[0], *agents[2:])))
            sent.clear()
            there = [rpc.rpc_async(name, fetch_there, args=(buffer, name)) for name in "cd"]
            KEPT["a"] = buffer.fetch()
            assert [future.wait() for future in there] == [float(KEPT["a"].sum())] * 2 and len(sent) == 10
        KEPT.clear()
        until(lambda: not any(len(lent_copies(agent)._copies) for agent in (agents[0], *agents[2:])))


def test_pieces_of_a_lost_or_slow_worker_come_from_others(sending, monkeypatch):
    agents, sent = sending
    buffer = rpc.rpc_sync("b", keep, args=(np.arange(100_000),))
    for name in "cd":
        rpc.rpc_sync(name, fetch_there, args=(buffer, name))
    assert len(sent) == 10
    monkeypatch.setattr(fetch, "SLOW_SECONDS", 0.1)
    monkeypatch.setattr(lent_copies(agents[2]), "_lend", print)
    agents[2].server.handlers[11] = lambda call: call.park()  # it does not answer
    agents[3].close("it was killed", farewell=False)
    assert tg.equal(buffer.fetch(timeout=30), tg.arange(100_000)) and 10 < len(sent) <= 20


@pytest.mark.processes
def test_a_process_is_killed_while_it_lends(forked_job):
    running = forked_job("killed_lender", 4, [])
    running.wait(codes=[0, 0, -signal.SIGKILL, 0])
    assert "[True, True]" in running.output(0) and "over" in running.output(0), running.outputs()


def test_a_fetch_that_took_too_long_leaves_room_to_others(sending):
    agents, _ = sending
    buffer = rpc.rpc_sync("b", keep, args=(np.arange(100_000),))
    read = agents[1].server.handlers[10]
    agents[1].server.handlers[10] = lambda call: call.park()
    for _ in range(2):
        with pytest.raises(RpcTimeoutError):
            buffer.fetch(timeout=0.05)
    agents[1].server.handlers[10] = read
    until(lambda: not agents[1].part(OwnedBuffers)._sources[0]._plan._sends)


def test_a_write_that_is_under_way_when_the_buffer_is_sealed_fails():
    with in_process_cluster("a", "b", options=rpc.GrpcRpcBackendOptions(lanes=SENT)) as (a, b), a.use():
        buffer = rpc.rpc_sync("b", keep, args=(np.zeros(100_000), False))
        later = b.threads.run_transfer
        b.threads.run_transfer = lambda task: (KEPT["buffer"].seal(), later(task))
        with pytest.raises(RpcError, match=r"buffer 0 of worker 'b' is sealed"):
            buffer.write_from(np.ones(100_000))
        assert not KEPT["buffer"].tensor.any()
    KEPT.clear()


def test_a_lost_owner_and_a_time_out_are_named(sending):
    agents, _ = sending
    buffer = rpc.rpc_sync("b", keep, args=(np.arange(100_000),))
    handlers = agents[1].server.handlers
    handlers[10] = lambda call: call.park()
    with pytest.raises(
        RpcTimeoutError, match=r"the fetch of Buffer\(0 of 'b', int64 \[100000\]\) took longer than 0.05 s"
    ):
        buffer.fetch(timeout=0.05)
    waiting = buffer.fetch_async()
    agents[1].close("it was killed", farewell=False)
    with pytest.raises(WorkerLostError, match="worker 'b'"):
        waiting.wait()
