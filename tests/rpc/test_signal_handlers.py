"""Signal handlers in the middle of reading and writing: what they raise reaches the user, and they cannot wait there."""

import re
import signal
import sys
import threading
from contextlib import suppress
from functools import partial

import pytest
from helpers.interrupts import OpcodeInterrupter, first_signal, free, interrupt_once
from helpers.interrupts import handle as handle_signal
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcCancelledError, RpcError
from telegrad.core.futures import Waiter, broke_protected, raised_by_handler, shield
from telegrad.rpc import receiver
from telegrad.rpc.lanes.frame import HEAD_BYTES
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.rpc.lanes.outbox import Outbox
from telegrad.rpc.lanes.sleeping import Sleeper
from telegrad.rpc.lanes.spinning import SpinPolicy
from telegrad.testing.cluster import in_process_cluster

MIB = 1 << 20
SECONDS = 60
PLACES = 400
ASLEEP = (Waiter.sleep.__code__, Sleeper._wait.__code__)
GATE = threading.Event()


@pytest.fixture(params=[("unix",), ()], ids=["unix", "grpc"])
def caller(request):
    """Agent ``a``, which has called ``b``."""
    with in_process_cluster("a", "b", make_lane=partial(GrpcLane, request.param)) as (a, _), a.use():
        assert rpc.rpc_sync("b", abs, (-1,)) == 1
        yield a


@pytest.fixture
def handle():
    """``handle(handler)`` sets the handler of a signal."""
    former = signal.getsignal(signal.SIGUSR1)
    yield partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, former)


def late(*_):
    raise TimeoutError("the user's own time limit")  # an OSError, as those of a socket


def pass_gate():
    return GATE.wait(SECONDS)


def answers():
    """Return whether a call is answered: one on a session that was given up fails."""
    try:
        return rpc.rpc_sync("b", abs, (-7,), timeout=SECONDS) == 7
    except RpcError:
        return False


@pytest.mark.parametrize("caller", [("unix",)], indirect=True)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (lambda stream: receiver, "decode"),
        (lambda stream: stream.reading, "_read"),
        (lambda stream: stream._writer, "_write"),
        (lambda stream: SpinPolicy, "end"),
    ],
    ids=["delivers", "reads", "writes", "leaves"],
)
def test_what_a_handler_raises_while_frames_are_moved_reaches_the_user(
    caller, handle, owner, name, monkeypatch, until, caplog
):
    handle(late)
    done = interrupt_once(monkeypatch, owner(caller.peers.find("b").link.dialed._stream), name)
    with pytest.raises(TimeoutError, match="own time limit"):
        while not done:  # another thread may have read the answer
            rpc.rpc_sync("b", abs, (-1,), timeout=SECONDS)
    until(answers)
    assert "cannot be read" not in caplog.text


def test_a_handler_that_waits_in_the_middle_of_a_write_is_refused(caller, handle, monkeypatch):
    errors, calls = [], []

    def call(*_):
        calls.append(rpc.rpc_async("b", abs, (-5,), timeout=SECONDS))
        try:
            rpc.rpc_sync("b", abs, (-6,), timeout=SECONDS)
        except RuntimeError as error:
            errors.append(str(error))

    handle(call)
    stream = caller.peers.find("b").link.dialed._stream
    done = interrupt_once(monkeypatch, *((stream._writer, "_write") if stream else (Outbox, "_write_next")))
    assert rpc.rpc_sync("b", abs, (-1,), timeout=SECONDS) == 1
    assert done and len(errors) == 1 and "in the signal handler of SIGUSR1 (call, " in errors[0]
    assert calls[0].wait(SECONDS) == 5, "it may send"


def test_a_handler_may_close_the_agent_in_the_middle_of_a_write(caller, handle, monkeypatch):
    """Another thread closes it: this one holds locks."""
    handle(lambda *_: caller.close("its handler said so", farewell=False))
    stream = caller.peers.find("b").link.dialed._stream
    done = interrupt_once(monkeypatch, *((stream._writer, "_write") if stream else (Outbox, "_write_next")))
    with NoHang(), pytest.raises(AgentClosedError):
        rpc.rpc_sync("b", abs, (-1,), timeout=SECONDS)
        while True:
            rpc.rpc_sync("b", abs, (-1,), timeout=SECONDS)
    assert done and caller.closed == "its handler said so"


class NoHang:
    """In the block, a lock or a sleep that the main thread waits for longer than ``SECONDS`` raises."""

    def __enter__(self):
        self._former = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._former)


EACH_LANE = pytest.mark.parametrize(
    ("lanes", "to", "argument"),
    [(("unix",), "b", b"x"), (("unix",), "b", bytes(MIB)), ((), "b", b"x"), ((), "a", b"x")],
    ids=["unix", "large", "grpc", "itself"],
)


@pytest.mark.slow
@EACH_LANE
def test_a_handler_may_call_wherever_it_interrupts_a_call_and_waits_or_is_refused(lanes, to, argument, handle):
    results, sent, answers, errors = [], [], [], []

    def call(*_):
        sent.append(rpc.rpc_async(to, abs, (-5,), timeout=SECONDS))
        try:
            answers.append(rpc.rpc_sync(to, abs, (-6,), timeout=SECONDS))
        except RuntimeError as error:
            errors.append(str(error))

    handle(call)
    interrupter = OpcodeInterrupter(action=partial(handle_signal, signal.SIGUSR1))
    with in_process_cluster("a", "b", make_lane=partial(GrpcLane, lanes)) as (a, _), a.use():
        for _ in range(PLACES):
            with NoHang():
                place = interrupter.run(lambda: results.append(rpc.rpc_sync(to, len, (argument,), timeout=SECONDS)))
                assert results.pop() == len(argument), place
        assert [future.wait(SECONDS) for future in sent] == [5] * len(sent)
    assert set(answers) <= {6} and len(sent) == len(answers) + len(errors) > 0
    assert all(re.search(r"in (the|a) signal handler", error) for error in errors)


@pytest.mark.slow
@EACH_LANE
def test_a_finalizer_may_call_wherever_an_object_is_freed_and_waits_or_is_refused(lanes, to, argument):
    results, sent, answers, errors = [], [], [], []

    class Calls:
        def __del__(self):
            sent.append(rpc.rpc_async(to, abs, (-5,), timeout=SECONDS))
            try:
                answers.append(rpc.rpc_sync(to, abs, (-6,), timeout=SECONDS))
            except RuntimeError as error:
                errors.append(str(error))

    interrupter = OpcodeInterrupter(action=partial(free, Calls))
    with in_process_cluster("a", "b", make_lane=partial(GrpcLane, lanes)) as (a, _), a.use():
        for _ in range(PLACES):
            with NoHang():
                place = interrupter.run(lambda: results.append(rpc.rpc_sync(to, len, (argument,), timeout=SECONDS)))
                assert results.pop() == len(argument), place
        assert [future.wait(SECONDS) for future in sent] == [5] * len(sent)
    assert set(answers) <= {6} and len(sent) == len(answers) + len(errors) > 0
    assert errors and all("in a finalizer (__del__, " in error for error in errors)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")  # of gRPC
@EACH_LANE
def test_what_a_handler_raises_anywhere_in_a_call_breaks_that_call_at_most(lanes, to, argument, handle, until):
    """Raises in a handler: the error reaches the user, and the next call is answered, if need be by another session."""
    handle(late)

    # asyncio takes an OSError there, which a TimeoutError is, for one of its own socket.
    interrupter = OpcodeInterrupter("_write_to_self", action=partial(handle_signal, signal.SIGUSR1))
    with in_process_cluster("a", "b", make_lane=partial(GrpcLane, lanes)) as (a, b), a.use():
        for _ in range(PLACES // 2):
            with NoHang():
                place = "raised"
                with suppress(RpcError, TimeoutError):
                    place = interrupter.run(partial(rpc.rpc_sync, to, len, (argument,), timeout=SECONDS))
                assert place in ("raised", None)
                until(partial(answered, to))
        until(lambda: not (a.caller.table.calls or a.server.serving or b.server.serving))


def answered(to):
    try:
        return rpc.rpc_sync(to, abs, (-7,), timeout=SECONDS) == 7
    except RpcError:
        return False


def test_a_handler_that_interrupts_a_wait_gets_its_answer(caller, until):
    """The thread sleeps there, and holds nothing that others need."""
    answers = []
    GATE.clear()

    def call():
        answers.append(rpc.rpc_sync("b", abs, (-6,), timeout=SECONDS))
        GATE.set()

    def interrupt(send):
        until(lambda: sys._current_frames()[threading.main_thread().ident].f_code in ASLEEP)
        send()

    with NoHang(), first_signal(signal.SIGUSR1, call) as send:
        sender = threading.Thread(target=interrupt, args=(send,))
        sender.start()
        assert rpc.rpc_sync("b", pass_gate, timeout=SECONDS)
        sender.join()
    assert answers == [6]


@pytest.mark.parametrize("handler", [late, partial(late), lambda *_: late()], ids=["function", "partial", "lambda"])
def test_an_error_of_a_handler_is_known_by_its_traceback(handle, handler):
    handle(handler)
    with pytest.raises(TimeoutError) as caught:
        signal.raise_signal(signal.SIGUSR1)
    assert raised_by_handler(caught.value)
    handle(signal.SIG_IGN)
    assert not raised_by_handler(caught.value)


@pytest.mark.parametrize("caller", [("unix",)], indirect=True)
@pytest.mark.parametrize(("raised", "handler"), [(TimeoutError, late), (KeyboardInterrupt, signal.default_int_handler)])
def test_a_session_that_was_left_in_the_middle_of_a_call_is_closed(caller, handle, raised, handler, monkeypatch):
    """Python's own handler, which may be that of any signal, is no function of Python: its error has no frame of it."""
    handle(handler)
    session = caller.peers.find("b").link.dialed
    interrupt_once(monkeypatch, session, "send")
    with pytest.raises(raised):
        rpc.rpc_sync("b", abs, (-1,), timeout=SECONDS)
    assert session.closed and not shield.noted
    assert rpc.rpc_sync("b", abs, (-7,), timeout=SECONDS) == 7


def test_ctrl_c_that_a_wait_raises_breaks_nothing(handle):
    """Ctrl-C came in the middle of protected code, and was noted until that had ended."""
    handle(signal.default_int_handler)
    shield.noted = 1.0
    with pytest.raises(KeyboardInterrupt) as caught:
        shield.deliver()
    assert not broke_protected(caught.value)


@pytest.mark.parametrize("caller", [()], ids=["grpc"], indirect=True)
def test_a_session_whose_write_was_interrupted_takes_no_more(caller, handle, monkeypatch):
    """Else a call that follows may go that way, be answered, and another one fail when the loop ends the stream."""
    handle(late)
    session = caller.peers.find("b").link.dialed
    done = interrupt_once(monkeypatch, Outbox, "_write_next")
    with pytest.raises(TimeoutError):
        while True:  # while the loop writes, this thread does not: then the call is answered
            assert rpc.rpc_sync("b", len, (bytes(MIB),), timeout=SECONDS) == MIB and not done
    assert not session.send([bytes(HEAD_BYTES)])
    assert rpc.rpc_sync("b", abs, (-7,), timeout=SECONDS) == 7


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [("unix",), ()], ids=["unix", "grpc"])
def test_a_finalizer_may_call_wherever_it_interrupts_a_cancel(lanes):
    sent, errors = [], []

    class Calls:
        def __del__(self):
            sent.append(rpc.rpc_async("b", abs, (-5,), timeout=SECONDS))
            try:
                rpc.rpc_sync("b", abs, (-6,), timeout=SECONDS)
            except RuntimeError as error:
                errors.append(str(error))

    interrupter = OpcodeInterrupter(action=partial(free, Calls))
    GATE.clear()
    try:
        with in_process_cluster("a", "b", make_lane=partial(GrpcLane, lanes)) as (a, _), a.use():
            for _ in range(PLACES // 2):
                future = rpc.rpc_async("b", pass_gate, timeout=SECONDS)
                with NoHang():
                    interrupter.run(future.cancel)
                assert isinstance(future.exception(), RpcCancelledError)
            GATE.set()
            assert [future.wait(SECONDS) for future in sent] == [5] * len(sent)
    finally:
        GATE.set()
    assert errors and all("in a finalizer (__del__, " in error for error in errors)
