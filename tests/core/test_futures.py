"""Futures: they complete once, tell everyone who waits, and hold nothing longer than they must."""

import contextvars
import sys
import threading
import time
import weakref

import pytest
from telegrad.base.errors import AgentClosedError, TelegradError
from telegrad.core.futures import Future, collect_all, complete_once, copy_outcome, wait_all, wait_for_any
from telegrad.core.futures import future as future_module

variable = contextvars.ContextVar("variable", default="nothing")


def done(value):
    future = Future()
    future.set_result(value)
    return future


def failed(error):
    future = Future()
    future.set_exception(error)
    return future


# -- completing


def test_a_value_arrives():
    future = Future()
    assert not future.done()
    assert repr(future) == "<Future pending>"
    future.set_result(3)
    assert future.done()
    assert future.value() == future.wait() == future.wait(0) == 3
    assert future.exception() is None
    assert repr(future) == "<Future value=3>"


def test_an_error_arrives():
    error = KeyError("k")
    future = failed(error)
    assert future.done()
    assert future.exception() is error
    assert repr(future) == "<Future error=KeyError('k')>"
    for ask in (future.value, future.wait):
        with pytest.raises(KeyError) as raised:
            ask()
        assert raised.value is error


def test_neither_value_nor_error_can_be_asked_for_early():
    future = Future()
    for ask in (future.value, future.exception):
        with pytest.raises(RuntimeError, match=r"has not completed; call wait\(\)"):
            ask()


@pytest.mark.parametrize("first", ["result", "exception"])
@pytest.mark.parametrize("second", ["result", "exception"])
def test_it_completes_once(first, second):
    future = Future()
    complete = {"result": lambda: future.set_result(1), "exception": lambda: future.set_exception(ValueError("no"))}
    complete[first]()
    with pytest.raises(RuntimeError, match="a future completes exactly once"):
        complete[second]()
    assert (future.exception() is None) is (first == "result")


def test_it_completes_once_however_many_try(thread):
    for _ in range(50):
        future, start, winners = Future(), threading.Barrier(4), []

        def attempt(number, future=future, start=start, winners=winners):
            start.wait(10)
            try:
                future.set_result(number)
                winners.append(number)
            except RuntimeError:
                pass

        for each in [thread(attempt, number) for number in range(4)]:
            each.join(10)
        assert winners == [future.wait()]


def test_only_exceptions_are_exceptions():
    with pytest.raises(TypeError, match="takes an exception, not str"):
        Future().set_exception("oops")


def test_complete_once_leaves_the_first_outcome():
    future = done(1)
    complete_once(future, 2)
    complete_once(future, error=ValueError("late"))
    assert future.wait() == 1


@pytest.mark.parametrize("source", [done(5), failed(ValueError("five"))])
def test_an_outcome_is_copied(source):
    target = Future()
    copy_outcome(source, target)
    assert (target.exception(), source.exception() or target.wait()) == (source.exception(), source.exception() or 5)


def test_an_exception_may_be_any(no_collector):
    for error in (KeyboardInterrupt(), SystemExit(3), GeneratorExit(), StopIteration(4)):
        with pytest.raises(type(error)):
            failed(error).wait()


# -- waiting


def test_waiting_threads_all_wake(thread):
    future, values = Future(), []
    threads = [thread(lambda: values.append(future.wait(10))) for _ in range(8)]
    future.set_result("x")
    for each in threads:
        each.join(10)
    assert values == ["x"] * 8


def test_wait_with_a_time_out():
    future = Future()
    for seconds in (0, 0.01, -1):
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=rf"did not complete within {seconds} s"):
            future.wait(seconds)
        assert time.monotonic() - began < 5
    future.set_result(1)
    assert future.wait(0) == 1


def test_a_time_out_beyond_what_the_system_can_wait_is_for_ever(thread):
    future = Future()
    thread(lambda: future.set_result(1))
    assert future.wait(1e12) == 1


def test_a_time_out_leaves_no_waiter_behind():
    future = Future()
    with pytest.raises(TimeoutError):
        future.wait(0.001)
    assert future._waiters == []


def test_a_future_can_be_waited_for_in_a_callback_of_another(thread):
    first, second = Future(), Future()
    both = first.then(lambda one: one.value() + second.wait(10))
    thread(first.set_result, 1)
    second.set_result(2)
    assert both.wait(10) == 3


def test_a_callback_may_wait_for_its_own_future():
    future = Future()
    result = future.then(lambda same: same.wait() + future.wait())
    future.set_result(1)
    assert result.wait() == 2


# -- callbacks


@pytest.mark.parametrize("early", [True, False])
def test_then_holds_the_callbacks_result(early):
    future = Future()
    if early:
        future.set_result(1)
    result = future.then(lambda one: one.value() + 1).then(lambda two: two.value() * 10)
    if not early:
        future.set_result(1)
    assert result.wait(0) == 20


def test_then_gets_the_future_also_when_it_failed():
    result = failed(ValueError("v")).then(lambda future: str(future.exception()))
    assert result.wait() == "v"


def test_an_error_passes_through_a_chain():
    future = Future()
    last = future.then(lambda one: one.value()).then(lambda two: two.value())
    error = ValueError("v")
    future.set_exception(error)
    assert last.exception() is error


def test_a_callback_that_raises_is_kept_in_the_future_that_then_returned():
    result = done(1).then(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        result.wait()
    assert raised.traceback[-1].name == "<lambda>"


def test_a_callback_that_exits_is_kept_too():
    assert isinstance(done(1).then(lambda _: sys.exit(3)).exception(), SystemExit)


def test_callbacks_run_in_order_in_the_thread_that_completes(thread):
    future, seen = Future(), []
    for number in range(3):
        future.add_done_callback(lambda _, number=number: seen.append((number, threading.current_thread())))
    setter = thread(future.set_result, None)
    setter.join(10)
    assert seen == [(number, setter) for number in range(3)]


def test_a_done_callback_that_raises_is_logged_and_the_others_run(caplog):
    future, seen = Future(), []
    future.add_done_callback(lambda _: 1 / 0)
    future.add_done_callback(seen.append)
    future.set_result(1)
    assert seen == [future]
    assert "ZeroDivisionError" in caplog.text
    assert "use then()" in caplog.text


def test_no_lock_is_held_while_callbacks_run():
    future, seen = Future(), []
    future.add_done_callback(lambda same: seen.append((same.done(), same.value(), same.wait())))
    future.add_done_callback(lambda same: same.add_done_callback(lambda _: seen.append("nested")))
    future.set_result(1)
    assert seen == [(True, 1, 1), "nested"]


@pytest.mark.parametrize("method", ["then", "add_done_callback"])
def test_a_callback_has_the_context_of_where_it_was_written(method, thread):
    future, seen = Future(), []
    token = variable.set("here")
    getattr(future, method)(lambda _: seen.append(variable.get()))
    variable.reset(token)
    thread(future.set_result, None).join(10)
    assert seen == ["here"]
    assert variable.get() == "nothing"


def test_a_callback_added_inside_a_callback_has_its_context():
    future, seen = Future(), []

    def callback(same):
        variable.set("inner")
        same.add_done_callback(lambda _: seen.append(variable.get()))

    future.then(callback)
    future.set_result(None)
    assert seen == ["inner"]


# -- several


def test_collect_all_waits_for_all_and_keeps_their_order():
    first, second = Future(), Future()
    everyone = collect_all([first, second])
    second.set_exception(ValueError("second"))
    assert not everyone.done()
    first.set_result(1)
    assert everyone.wait(0) == [first, second]
    assert collect_all([]).wait(0) == []
    assert collect_all(iter([first, first])).wait(0) == [first, first]


def test_wait_all_returns_the_values_in_order(thread):
    futures = [Future() for _ in range(3)]
    for number in (2, 0, 1):
        thread(futures[number].set_result, number)
    assert wait_all(futures) == [0, 1, 2]
    assert wait_all([]) == []
    assert wait_all(done(number) for number in range(3)) == [0, 1, 2]


def test_wait_all_raises_the_first_error_that_happens_and_waits_for_nobody_else(thread, until):
    never, second, third = Future(), Future(), Future()

    def fail_third_then_second():
        until(lambda: third._waiters)  # it is waited for
        third.set_exception(KeyError("third"))
        second.set_exception(ValueError("second"))

    thread(fail_third_then_second)
    with pytest.raises(KeyError, match="third"):
        wait_all([never, second, third])


# -- what is kept


class Thing:
    pass


def test_a_value_is_freed_with_its_future(no_collector):
    thing, future = Thing(), Future()
    kept = weakref.ref(thing)
    later = future.then(lambda same: same.value())
    future.set_result(thing)
    assert future.wait() is later.wait() is thing
    del thing, future, later
    assert kept() is None


def test_an_error_that_was_raised_keeps_nothing_in_a_cycle(no_collector):
    thing = Thing()
    kept = weakref.ref(thing)

    def scope(thing):
        for ask in (Future.wait, Future.value):
            try:
                ask(failed(ValueError("v")))
            except ValueError:
                assert thing

    scope(thing)
    del thing
    assert kept() is None


def test_wait_all_keeps_nothing_in_a_cycle(no_collector):
    thing = Thing()
    kept = weakref.ref(thing)

    def scope(thing):
        try:
            wait_all([done(thing), failed(ValueError("v"))])
        except ValueError:
            pass

    scope(thing)
    del thing
    assert kept() is None


@pytest.mark.parametrize("before", [False, True])
def test_a_callback_that_raised_keeps_nothing_in_a_cycle(no_collector, before):
    thing = Thing()
    kept = weakref.ref(thing)

    def scope(thing):
        def callback(_):
            held = thing
            raise ValueError(held)

        future = done(1) if before else Future()
        future.then(callback)
        return future

    future = scope(thing)
    if not before:
        future.set_result(1)
    del thing, future
    assert kept() is None


def test_errors_share_one_root_and_are_what_careful_programs_catch():
    from telegrad.base import errors

    for kind, caught in {
        errors.RpcTimeoutError: TimeoutError,
        errors.WorkerLostError: ConnectionError,
        errors.UnknownWorkerError: LookupError,
        errors.AuthenticationError: PermissionError,
        errors.SerializationError: TypeError,
        errors.RemoteError: RuntimeError,
        errors.AgentClosedError: RuntimeError,
        errors.RendezvousError: RuntimeError,
    }.items():
        assert issubclass(kind, (caught,))
        assert issubclass(kind, TelegradError)


# -- waiting that ends otherwise


@pytest.mark.parametrize(
    "use",
    [
        lambda future: future.wait(),
        lambda future: future.then(print),
        lambda future: future.add_done_callback(print),
        lambda future: collect_all([future]),
        lambda future: wait_all([future]),
    ],
)
def test_a_forked_child_does_not_wait_for_a_future_of_its_parent(use, monkeypatch):
    future = Future()
    monkeypatch.setattr(future_module, "_forks", future_module._forks + 1)  # as after a fork
    with pytest.raises(AgentClosedError, match="made before this process was forked"):
        use(future)


class Completes:
    """Driver that completes the future that it is asked to help with, and notes it."""

    def __init__(self, asked):
        self.asked = asked

    def drive(self, future, until):
        self.asked.append(future)
        future.set_result(None)


def test_a_thread_that_waits_for_several_helps_with_one_after_another():
    asked = []
    members = [Future() for _ in range(3)]
    for member in members:
        member.driver = Completes(asked)
    members[1].set_result(None)
    assert collect_all(members).wait() == members
    assert asked == [members[0], members[2]]


def test_a_thread_that_waits_for_what_may_end_earlier_helps_with_that():
    asked = []
    member = Future()
    member.driver = Completes(asked)
    both = collect_all([member])
    earlier = Future()
    earlier.driver = both.driver
    assert earlier.wait() is None
    assert asked == [earlier] and not member.done()


def test_waiting_for_any_ends_with_the_first_outcome():
    first, second = Future(), Future()
    with pytest.raises(TimeoutError):
        wait_for_any([first, second], 0.0)
    thread = threading.Thread(target=second.set_exception, args=(ValueError("no"),))
    thread.start()
    wait_for_any([first, second])
    thread.join()
    assert second.done() and not first.done()
    wait_for_any([first, second])
    first.set_result(1)
