"""The chaos tool: its rounds are dealt by seed, its checks find what they are for, and a small run of it holds."""

import asyncio
from collections import Counter
from itertools import islice

import pytest
from telegrad.launcher.environment import reserve_port
from telegrad.testing.chaos.checks import Excuses, check_calls
from telegrad.testing.chaos.faults import FAULTS, Fate
from telegrad.testing.chaos.journal import Attempt, Journal, Run, WrongResultError, read_journals
from telegrad.testing.chaos.plan import plan_rounds
from telegrad.testing.chaos.relay import Relay


def kinds(attempts, runs=(), excuses=None):
    return [violation.kind for violation in check_calls(attempts, runs, excuses or Excuses(), slack=1.0)]


def attempt(**changes):
    given = {"outcome": "answered", "value": 7, "took": 1.0, **changes}
    return Attempt((0, 1), "count", ["w1"], 4.0, **given)


RAN = Run((0, 1), 7, 1)


def test_a_good_call():
    assert kinds([attempt()], [RAN]) == []


def test_a_call_that_ran_twice_is_found():
    assert kinds([], [RAN, Run((0, 1), 9, 1)]) == ["ran twice"]


def test_an_answer_without_a_run_is_found():
    assert kinds([attempt()]) == ["lost answer"]
    assert kinds([attempt()], [Run((0, 1), 8, 1)]) == ["lost answer"]


def test_a_call_that_never_ends_or_ends_late_is_found():
    assert kinds([attempt(outcome="unended")]) == ["hang"]
    assert kinds([attempt(took=5.5)], [RAN]) == ["hang"]
    assert kinds([attempt(took=5.5)], [RAN], Excuses(late=Counter({0: 2}))) == []
    assert kinds([attempt(outcome="unended")], [RAN], Excuses(gone={0})) == []


def test_an_error_must_name_a_worker():
    assert kinds([attempt(outcome="RpcTimeoutError", text="the call on 'w1' got no answer")]) == []
    assert kinds([attempt(outcome="RpcTimeoutError", text="no answer")]) == ["unclear error"]
    assert kinds([attempt(outcome="KeyError", text="'w1'")]) == ["unclear error"]
    assert kinds([attempt(outcome="MemoryError")], (), Excuses(starved={1})) == []
    assert kinds([attempt(outcome="WrongResultError", text="'w1'")]) == ["wrong result"]


def test_journals_tell_what_happened(tmp_path):
    caller, callee = Journal(tmp_path, 0), Journal(tmp_path, 1)

    def answered(call):
        callee.ran(call, 5)
        return 5

    def wrong(call):
        raise WrongResultError("changed")

    assert caller.attempt("count", ["w1"], 2.0, answered) == 5
    assert caller.attempt("echo", ["w1"], 2.0, wrong) is None
    caller.close()
    callee.close()
    with (tmp_path / "journal-0").open("a") as file:
        file.write('{"begin": [0, 2], "kind": "count"')  # its worker was killed in the midst of a line
    attempts, runs = read_journals(tmp_path, 3)
    assert [(each.call, each.outcome, each.value) for each in attempts] == [
        ((0, 0), "answered", 5),
        ((0, 1), "WrongResultError", None),
    ]
    assert runs == [Run((0, 0), 5, 1)]


def test_rounds_are_dealt_by_seed():
    first, again = (list(islice(plan_rounds(list(FAULTS.values()), 4, 3), 20)) for _ in range(2))
    assert first == again
    dealt = Counter(fault.name for plan in first for fault in plan.faults)
    assert set(dealt) == set(FAULTS)
    for plan in first:
        fates = [fault.fate is Fate.STAYS for fault in plan.faults]
        assert fates == [True] * 3 + [False] * 2


class Echo:
    """A server that sends back what it gets."""

    async def __aenter__(self):
        self.reserved = reserve_port()
        self.port = self.reserved.getsockname()[1]
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.reserved.close()

    async def answer(self, reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()


async def talk(streams, data):
    reader, writer = streams
    writer.write(data)
    return await asyncio.wait_for(reader.readexactly(len(data)), 30)


async def test_a_relay_forwards_in_order_also_when_it_delays():
    async with Echo() as echo, Relay(echo.port) as relay:
        streams = await asyncio.open_connection("127.0.0.1", relay.port)
        data = bytes(range(256)) * 4096
        assert await talk(streams, data) == data
        relay.delay = 0.01
        assert await talk(streams, data) == data
        streams[1].close()


async def test_a_silent_relay_forwards_later():
    async with Echo() as echo, Relay(echo.port) as relay:
        streams = await asyncio.open_connection("127.0.0.1", relay.port)
        assert await talk(streams, b"one") == b"one"
        relay.silence()
        answer = asyncio.ensure_future(talk(streams, b"two"))
        done, _ = await asyncio.wait([answer], timeout=0.1)
        assert not done
        relay.heal()
        assert await answer == b"two"
        streams[1].close()


async def test_a_cut_relay_breaks_connections_and_a_healed_one_takes_new_ones():
    async with Echo() as echo, Relay(echo.port) as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        assert await talk((reader, writer), b"one") == b"one"
        relay.cut()
        assert await asyncio.wait_for(ended(reader), 30)
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)  # taken, and broken
        assert await asyncio.wait_for(ended(reader), 30)
        writer.close()
        relay.heal()
        streams = await asyncio.open_connection("127.0.0.1", relay.port)
        assert await talk(streams, b"two") == b"two"
        streams[1].close()


async def test_a_relay_refuses_when_its_target_does():
    async with Echo() as echo, Relay(echo.port) as relay:
        echo.server.close()
        await echo.server.wait_closed()
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        assert await asyncio.wait_for(ended(reader), 30)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", relay.port)


async def ended(reader):
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


@pytest.mark.long
@pytest.mark.parametrize("faults", [["kill-parent"], pytest.param(["reset", "descriptors"], marks=pytest.mark.soak)])
def test_a_short_run(run_python, faults):
    """Connections break, descriptors run out, a worker with a forked child is killed: all ends as it should."""
    options = [each for fault in faults for each in ("--fault", fault)]
    run_python("-m", "telegrad.testing.chaos", "--rounds", "1", "--workers", "3", *options, timeout=300)


def test_bad_input(run_python):
    output = run_python("-m", "telegrad.testing.chaos", "--activity", "no.such:thing", code=2)
    assert "no activity 'no.such:thing'" in output
