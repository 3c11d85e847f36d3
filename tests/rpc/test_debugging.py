"""Threads held at a prompt of pdb, lines typed into them from another worker, and time-outs that stand still meanwhile."""

import asyncio
import contextlib
import contextvars
import json
import subprocess
import sys
import threading
import weakref

import pytest
from helpers.threads import until
from telegrad import rpc
from telegrad.core.futures import program_clock
from telegrad.rpc.debugging import hooks
from telegrad.rpc.debugging.debugger import Debugger
from telegrad.rpc.debugging.held_pdb import _streams as streams
from telegrad.testing import in_process_cluster


def inner(x):
    y = x + 1
    rpc.set_trace()
    return y * 2


def middle(x):
    return rpc.rpc_sync("c", inner, args=(x,), timeout=0.2)


def outer(x):
    return rpc.rpc_sync("b", middle, args=(x,), timeout=0.2)


def twice(x):
    rpc.set_trace()
    x += 1
    rpc.set_trace()
    return x


def held_while_a_key_goes():
    keys = [Key()]
    values = weakref.WeakKeyDictionary({keys[0]: 1})
    rpc.set_trace(), keys.clear()  # the callback of the dictionary runs before the next line
    return len(values)


def fail(key):
    values = {"a": 1}
    return values[key]


class Key:
    """Object that can be referred to weakly."""


class Terminal:
    """Client of a debugger, as ``telegrad debug`` is: asks a worker for its stops, and types into one."""

    def __init__(self, agent, worker):
        self.debugger = agent.part(Debugger)
        self.peer = agent.peers.find(worker)
        self.number = self.seen = 0

    def ask(self, **request):
        return json.loads(self.debugger.ask(self.peer, request, 20.0).wait())

    def stops(self):
        return self.ask(ask="stops")

    def attach(self):
        """Wait until a thread is held, and return its place and the first output."""
        (place,) = until(self.stops)
        self.number, self.seen = place["stop"], 0
        return place, self.read()["output"]

    def read(self):
        """Return what was said when the thread waits for a line, or goes on."""
        told = self.ask(ask="talk", stop=self.number, seen=self.seen)
        while told["state"] == "running":
            told = self.ask(ask="talk", stop=self.number, seen=self.seen)
        self.seen = told["seen"]
        return told

    def type(self, line):
        told = self.ask(ask="talk", stop=self.number, seen=self.seen, line=line)
        self.seen = told["seen"]
        if told["state"] != "running":
            return told["output"]
        return told["output"] + self.read()["output"]


@contextlib.contextmanager
def called(function, *args, to="b"):
    """Call a function on a worker in another thread; yields the list that gets its outcome."""
    outcome = []

    def run():
        try:
            outcome.append(rpc.rpc_sync(to, function, args=args, timeout=0.5))
        except Exception as error:
            outcome.append(error)

    context = contextvars.copy_context()  # names the agent
    thread = threading.Thread(target=lambda: context.run(run), name="caller")
    thread.start()
    yield outcome
    thread.join(20)
    assert not thread.is_alive() and outcome


def test_three_calls_deep_there_is_one_stack_and_no_time_out():
    with in_process_cluster("a", "b", "c") as (a, _, _), a.use():
        outcome, context = [], contextvars.copy_context()
        thread = threading.Thread(target=lambda: outcome.append(context.run(outer, 3)))
        thread.start()
        terminal = Terminal(a, "c")
        place, shown = terminal.attach()
        assert (place["worker"], place["function"], place["reason"]) == ("c", "inner", "breakpoint")
        assert "return y * 2" in shown and shown.endswith("(c) ")
        thread.join(0.5)  # more than the time-outs of both calls
        assert thread.is_alive() and not outcome
        assert terminal.type("p y").startswith("4\n")
        stack = terminal.type("where")
        places = [
            stack.index(text) for text in ("worker 'a'", "outer()", "worker 'b'", "middle()", "worker 'c'", "inner()")
        ]
        assert places == sorted(places) and "server_call.py" not in stack
        (cause,) = [each for each in rpc.why().causes if each.kind == "debugger"]
        assert (cause.worker, cause.at.function) == ("c", "inner") and "held by a debugger" in cause.text
        terminal.type("continue")
        thread.join(20)
        assert outcome == [8]
        until(lambda: not program_clock._holders)


def test_values_can_be_changed_and_lines_stepped_through():
    with in_process_cluster("a", "b") as (a, _), a.use(), called(inner, 3) as outcome:
        terminal = Terminal(a, "b")
        terminal.attach()
        terminal.type("!y = 50")
        assert "--Return--" in terminal.type("next")
        assert "the end of the program's code" in terminal.type("next")
        assert until(lambda: outcome) == [100]


def test_a_second_breakpoint_is_the_same_or_a_new_stop():
    with in_process_cluster("a", "b") as (a, _), a.use(), called(twice, 1) as outcome:
        terminal = Terminal(a, "b")
        terminal.attach()
        first = terminal.number
        terminal.type("continue")
        place, shown = terminal.attach()
        assert place["stop"] == first + 1 and "return x" in shown
        terminal.type("c")
        assert until(lambda: outcome) == [2]


def test_quit_fails_the_call():
    with in_process_cluster("a", "b") as (a, _), a.use():
        with called(inner, 1) as outcome:
            Terminal(a, "b").attach()
            terminal = Terminal(a, "b")
            terminal.attach()
            terminal.type("quit")
        assert type(outcome[0]).__name__ == "BdbQuit"
        assert Terminal(a, "b").stops() == []


def test_quit_is_not_raised_in_the_callback_of_a_weak_reference():
    with in_process_cluster("a", "b") as (a, _), a.use():
        with called(held_while_a_key_goes) as outcome:
            terminal = Terminal(a, "b")
            place, _ = terminal.attach()
            terminal.type("quit")
        assert (place["function"], type(outcome[0]).__name__) == ("held_while_a_key_goes", "BdbQuit")


@pytest.mark.parametrize("command", ["EOF", "exit"])
def test_each_word_for_the_end_lets_the_clock_go(command):
    with in_process_cluster("a", "b") as (a, _), a.use(), called(inner, 1):
        terminal = Terminal(a, "b")
        terminal.attach()
        terminal.type(command)
        until(lambda: not program_clock._holders)


@pytest.mark.parametrize("command", ["run", "restart x", "interact"])
def test_commands_that_would_leave_the_prompt_are_refused(command):
    with in_process_cluster("a", "b") as (a, _), a.use(), called(inner, 1):
        terminal = Terminal(a, "b")
        terminal.attach()
        assert "***" in terminal.type(command)
        terminal.type("continue")
        until(lambda: not program_clock._holders)


def test_a_thread_with_breakpoints_is_held_at_its_own_code_again():
    with in_process_cluster("a", "b") as (a, _), a.use(), called(twice, 1) as outcome:
        terminal = Terminal(a, "b")
        terminal.attach()
        assert "Breakpoint" in terminal.type("b fail")
        terminal.type("continue")
        place, _ = terminal.attach()
        assert (place["function"], place["file"]) == ("twice", __file__)
        assert "cleared" in terminal.type("clear")
        terminal.type("continue")
        assert until(lambda: outcome) == [2]


async def suspended(x):
    await asyncio.sleep(0)
    rpc.set_trace()
    await asyncio.sleep(0)
    return x


async def failing_while_suspended(x):
    failed = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(failed.set_exception, KeyError(x))
    rpc.set_trace()
    await failed


def counted():
    rpc.set_trace()
    yield 1
    yield 2


def iterated(x):
    return sum(counted()) + x


@pytest.mark.parametrize("function", [suspended, failing_while_suspended, iterated])
def test_steps_to_the_end_of_what_can_be_suspended_let_the_clock_go(function):
    with in_process_cluster("a", "b") as (a, _), a.use(), called(function, 1) as outcome:
        terminal = Terminal(a, "b")
        terminal.attach()
        while terminal.stops():
            told = terminal.ask(ask="talk", stop=terminal.number, seen=0, line="next")
            while told.get("state") == "running":
                told = terminal.ask(ask="talk", stop=terminal.number, seen=0)
        until(lambda: outcome and not program_clock._holders)


def test_a_step_that_takes_long_is_given_up_and_held_again_at_the_next_prompt(monkeypatch):
    monkeypatch.setattr("telegrad.rpc.debugging.debugger.STEPPING_SECONDS", 0.2)
    with in_process_cluster("a", "b") as (a, _), a.use(), called(waits_in_a_step, 1) as outcome:
        terminal = Terminal(a, "b")
        terminal.attach()
        terminal.ask(ask="talk", stop=terminal.number, seen=0, line="next")
        until(lambda: not program_clock._holders)
        GATE.set()
        _, shown = terminal.attach()
        assert "return x" in shown
        terminal.type("continue")
    assert outcome == [1] and not program_clock._holders


GATE = threading.Event()


def waits_in_a_step(x):
    rpc.set_trace()
    GATE.wait(20)
    return x


def test_statements_in_two_threads_put_the_streams_back():
    own = sys.stdout
    with in_process_cluster("a", "b") as (a, _), a.use(), called(inner, 1), called(inner, 2):
        until(lambda: len(Terminal(a, "b").stops()) == 2)
        first, second = (Terminal(a, "b") for _ in range(2))
        first.number, second.number = (each["stop"] for each in first.stops())
        first.read(), second.read()
        gates = {name: threading.Event() for name in ("FIRST", "SECOND")}
        with pytest.MonkeyPatch.context() as patch:
            for name, gate in gates.items():
                patch.setattr(sys.modules[__name__], name, gate, raising=False)
            first.ask(ask="talk", stop=first.number, seen=first.seen, line="FIRST.wait(20)")
            until(lambda: sys.stdout is not own)
            second.ask(ask="talk", stop=second.number, seen=second.seen, line="SECOND.wait(20)")
            until(lambda: streams._users == 2)
            gates["FIRST"].set()
            first.read()
            gates["SECOND"].set()
            second.read()
        first.type("continue"), second.type("continue")
    assert sys.stdout is own


def test_another_terminal_goes_on_where_one_was_lost():
    with in_process_cluster("a", "b") as (a, _), a.use(), called(inner, 1):
        lost = Terminal(a, "b")
        lost.attach()
        lost.type("p 'said before'")
        found = Terminal(a, "b")
        _, shown = found.attach()
        assert "said before" in shown
        found.type("c")


def test_a_worker_that_nothing_talks_to_goes_on(monkeypatch):
    monkeypatch.setattr("telegrad.rpc.debugging.debugger.ALONE_SECONDS", 0.05)
    with in_process_cluster("a", "b") as (a, _), a.use(), called(inner, 1) as outcome:
        assert until(lambda: outcome) == [4]


def test_the_clock_goes_on_when_a_held_worker_is_closed():
    with in_process_cluster("a", "b") as (a, b), a.use(), called(inner, 1):
        Terminal(a, "b").attach()
        assert program_clock._holders == 2
        b.close()
        until(lambda: not program_clock._holders)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"ask": "all"}, "asks for one of"),
        ({"ask": "talk", "stop": 99, "seen": 0}, "no stop 99"),
        ({"ask": "talk", "stop": "x", "seen": 0}, "invalid literal"),
        ({"ask": "talk", "stop": float("inf"), "seen": 0}, "infinity"),
        ({"ask": "talk"}, "stop"),
    ],
)
def test_requests_that_make_no_sense_are_answered_with_the_reason(request_, words):
    with in_process_cluster("a", "b") as (a, _), a.use():
        assert words in Terminal(a, "b").ask(**request_)["error"]


def test_the_first_exception_of_the_job_holds_its_thread():
    with in_process_cluster("a", "b") as (a, b), a.use():
        for agent in (a, b):
            agent.server.failed = agent.part(Debugger).hold_first
        with called(fail, "b") as outcome:
            terminal = Terminal(a, "b")
            place, _ = terminal.attach()
            assert (place["function"], place["reason"]) == ("fail", "KeyError: 'b'")
            assert terminal.type("p values, key").startswith("({'a': 1}, 'b')\n")
            terminal.type("c")
        assert isinstance(outcome[0], KeyError)
        with called(fail, "c") as outcome:
            pass
        assert isinstance(outcome[0], KeyError) and Terminal(a, "b").stops() == []


def test_breakpoint_is_ours_where_standard_input_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    with in_process_cluster("a", "b") as (a, b), a.use():
        hooks.install_debugger(b)
        with called(stopped, 1) as outcome:
            place, _ = Terminal(a, "b").attach()
            assert place["function"] == "stopped"
            terminal = Terminal(a, "b")
            terminal.attach()
            terminal.type("c")
        assert outcome == [2]
    assert sys.breakpointhook is sys.__breakpointhook__


def stopped(x):
    breakpoint()
    return x + 1


def test_a_hook_of_the_program_stays(monkeypatch):
    monkeypatch.setattr(sys, "breakpointhook", own := lambda: None)
    with in_process_cluster("a") as (a,):
        hooks.install_debugger(a)
        assert sys.breakpointhook is own


HELD = """
import os, signal, sys, threading, time
from telegrad import rpc
from telegrad.core.futures import program_clock
from telegrad.rpc.current import current_agent
from telegrad.rpc.debugging.debugger import Debugger

rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=rpc.GrpcRpcBackendOptions(init_method=sys.argv[1]))
debugger = current_agent().part(Debugger)

def when_held(action):
    def wait():
        while not any(stop.said(0).state == "prompt" for stop in list(debugger._stops.values())):
            time.sleep(0.01)
        action(next(iter(debugger._stops.values())))
    threading.Thread(target=wait, daemon=True).start()

def forked(stop):
    if not os.fork():
        hook = sys.breakpointhook is sys.__breakpointhook__
        print("child", hook, program_clock._holders, flush=True)
        os._exit(0)
    os.wait()
    stop.give("next\\n")
    stop.give("next\\n")
    stop.give("continue\\n")

when_held(forked)
breakpoint()
child = os.fork()  # while it is stepped
if not child:
    os._exit(0)
os.wait()
when_held(lambda stop: os.kill(os.getpid(), signal.SIGINT))
try:
    breakpoint()
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
print(program_clock._holders)
rpc.shutdown()
"""


@pytest.mark.processes
def test_forked_children_are_not_held_and_ctrl_c_ends_a_held_main_thread(run_python, tmp_path):
    output = run_python("-c", HELD, f"file://{tmp_path}/place", stdin=subprocess.DEVNULL, timeout=60)
    assert output.splitlines() == ["child True 0", "interrupted", "0"]
