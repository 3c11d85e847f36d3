"""Calls: to others and to oneself, from any thread, loop or callback; nested as deep as anyone likes."""

import asyncio
import contextvars
import copy
import re
import threading
import weakref

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcError, UnknownWorkerError
from telegrad.core.futures import Future, collect_all
from telegrad.rpc.extend import GrpcRpcBackendOptions, current_agent
from telegrad.testing.cluster import in_process_cluster


def add(first, second=0):
    return first + second


def who():
    return rpc.get_worker_info().name


async def add_slowly(first, second):
    await asyncio.sleep(0)
    return first + second + (await rpc.rpc_async("c", add, (1, 1)))


def nest(depth, here, there):
    if depth == 0:
        return 0
    return 1 + rpc.rpc_sync(there, nest, (depth - 1, there, here))


def relay(route, function, args):
    if not route:
        return function(*args)
    return rpc.rpc_sync(route[0], relay, (route[1:], function, args))


# -- calling


@pytest.mark.parametrize("to", ["a", "b", 0, 1, rpc.WorkerInfo("b", 1)])
def test_a_worker_can_be_named_in_every_way(workers, to):
    name = to if isinstance(to, str) else "ab"[to if isinstance(to, int) else to.id]
    assert rpc.rpc_sync(to, who) == rpc.rpc_async(to, who).wait() == name
    assert rpc.get_worker_info(name) == rpc.WorkerInfo(name, "ab".index(name))


def test_arguments(workers):
    assert rpc.rpc_sync("b", add, (1, 2)) == 3
    assert rpc.rpc_sync("b", add, [1], {"second": 2}) == 3
    assert rpc.rpc_sync("b", add, kwargs={"first": 1}) == 1
    assert rpc.rpc_sync("b", list) == []
    assert rpc.rpc_sync("b", add, ("x" * 1_000_000, "y"))[-2:] == "xy"


def test_none_travels_both_ways(workers):
    assert rpc.rpc_sync("b", print) is None
    assert rpc.rpc_sync("b", type, (None,)) is type(None)


def test_many_calls_at_once(workers):
    futures = [rpc.rpc_async("bc"[number % 2], add, (number, 1)) for number in range(500)]
    assert tg.futures.wait_all(futures) == list(range(1, 501))


def test_a_call_runs_at_the_callee_as_the_callee(workers):
    assert relay(["b", "c", "b", "a"], who, ()) == "a"
    assert relay(["b", "c"], who, ()) == "c"


def test_calls_from_many_threads(workers):
    a, results = workers[0], []

    def work(number):
        with a.use():
            results.append([rpc.rpc_sync("b", add, (number, index)) for index in range(20)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == [[number + index for index in range(20)] for number in range(8)]


def test_calls_from_callbacks(workers):
    future = rpc.rpc_async("b", add, (1,)).then(lambda one: rpc.rpc_sync("c", add, (one.value(), 1)))
    assert future.then(lambda two: rpc.rpc_async("b", add, (two.value(), 1)).wait()).wait() == 3


def test_more_callbacks_that_wait_than_threads_for_them(workers):
    gate = Future()
    waiting = [rpc.rpc_async("b", add, (number,)).then(lambda one: one.value() + gate.wait(20)) for number in range(20)]
    assert rpc.rpc_async("b", add, (1,)).then(lambda one: one.value()).wait(20) == 1
    gate.set_result(100)
    assert tg.futures.wait_all(waiting) == [100 + number for number in range(20)]


def test_a_callback_keeps_the_agent_of_where_it_was_written(workers):
    b = workers[1]
    with b.use():
        future = rpc.rpc_async("c", add, (1,))
        name = future.then(lambda _: current_agent().name)
    assert name.wait() == "b"


async def test_calls_from_asyncio(cluster):
    with cluster("a", "b", "c") as (a, _b, _c), a.use():
        values = await asyncio.gather(*(as_coroutine(rpc.rpc_async("b", add, (n,))) for n in range(20)))
        assert values == list(range(20))
        with pytest.raises(ZeroDivisionError):
            await rpc.rpc_async("b", add, (1,)).then(lambda _: 1 / 0)


async def as_coroutine(future):
    return await future


def test_coroutine_functions(workers):
    assert rpc.rpc_sync("b", add_slowly, (1, 2)) == 5
    assert tg.futures.wait_all([rpc.rpc_async("b", add_slowly, (n, 2)) for n in range(50)]) == [
        n + 4 for n in range(50)
    ]
    with rpc.remote("b", add_slowly, (1, 2)) as reference:
        assert reference.to_here() == 5


async def wait_in_a_loop():
    rpc.rpc_sync("c", add, (1, 1))


def test_blocking_in_a_coroutine_function_is_refused(workers):
    with pytest.raises(RuntimeError, match=r"rpc_sync\(\).* event loop's own thread.*await rpc\.rpc_async"):
        rpc.rpc_sync("b", wait_in_a_loop)


async def fail_slowly():
    await asyncio.sleep(0)
    raise KeyError("slow")


def test_a_coroutine_function_that_raises(workers):
    with pytest.raises(KeyError, match="slow") as raised:
        rpc.rpc_sync("b", fail_slowly)
    assert "fail_slowly" in str(raised.value.__cause__)


variable = contextvars.ContextVar("variable", default="clean")


def set_variable():
    variable.set("used")
    return "set"


def get_variable():
    return variable.get()


def test_a_call_s_context_variables_are_its_own(workers):
    variable.set("caller's")
    rpc.rpc_sync("b", set_variable)
    assert [rpc.rpc_sync("b", get_variable) for _ in range(20)] == ["clean"] * 20
    assert variable.get() == "caller's"


# -- nesting


@pytest.mark.slow
def test_a_thousand_nested_calls_with_two_threads(cluster):
    options = GrpcRpcBackendOptions(num_worker_threads=2, rpc_timeout=100)
    with cluster("a", "b", options=options) as (a, _), a.use():
        assert nest(1000, "a", "b") == 1000


def test_nested_calls_to_oneself(cluster):
    with cluster("a", options=GrpcRpcBackendOptions(num_worker_threads=1)) as (a,), a.use():
        assert nest(200, "a", "a") == 200


def fan(depth, width):
    if depth == 0:
        return 1
    there = "b" if who() == "a" else "a"
    return sum(tg.futures.wait_all([rpc.rpc_async(there, fan, (depth - 1, width)) for _ in range(width)]))


def test_nested_fans(cluster):
    with cluster("a", "b", options=GrpcRpcBackendOptions(num_worker_threads=2)) as (a, _), a.use():
        assert fan(4, 4) == 4**4


# -- misuse


@pytest.mark.parametrize("verb", [rpc.rpc_sync, rpc.rpc_async, rpc.remote])
@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (("x", add), UnknownWorkerError, r"no worker 'x'.*its workers are 'a' \(0\), 'b' \(1\), 'c' \(2\)"),
        ((7, add), UnknownWorkerError, "no worker 7"),
        ((-1, add), UnknownWorkerError, "no worker -1"),
        ((rpc.WorkerInfo("z", 1), add), UnknownWorkerError, "no worker 'z'"),
        ((None, add), TypeError, "by None; use its name, its rank or its WorkerInfo"),
        ((True, add), TypeError, "by True"),
        ((b"b", add), TypeError, "by b'b'"),
        (("b", 3), TypeError, "func must be something to call; you gave 3"),
        (("b", "add"), TypeError, "func must be something to call; you gave 'add'"),
        (("b", add, 3), TypeError, r"args must be a tuple; you gave 3. For one argument write args=\(x,\)"),
        (("b", add, "ab"), TypeError, "args must be a tuple"),
        (("b", add, (), 3), TypeError, "kwargs must be a dict"),
        (("b", add, (), {1: 2}), TypeError, r"kwargs must have names of parameters, which are strings; you gave \[1\]"),
        (("b", add, (), {}, -2), ValueError, "timeout must be a number of seconds, 0 for none; you gave -2"),
        (("b", add, (), {}, "1"), ValueError, "timeout must be"),
        (("b", add, (), {}, None), ValueError, "timeout must be"),
        (("b", add, (), {}, float("nan")), ValueError, "timeout must be"),
    ],
)
def test_misuse_is_told_at_once(workers, verb, args, error, words):
    with pytest.raises(error, match=words):
        verb(*args)
    assert rpc.debug_info()["pending_calls"] == 0


def test_wrong_arguments_are_the_callee_s_error(workers):
    with pytest.raises(TypeError, match=re.escape("add() takes from 1 to 2 positional arguments")):
        rpc.rpc_sync("b", add, (1, 2, 3))
    with pytest.raises(TypeError, match="unexpected keyword argument 'third'"):
        rpc.rpc_sync("b", add, (1,), {"third": 3})


def test_without_an_agent():
    with pytest.raises(AgentClosedError, match=r"call rpc\.init_rpc\(\.\.\.\) first"):
        rpc.rpc_sync("b", add)
    with pytest.raises(AgentClosedError):
        rpc.shutdown()
    with pytest.raises(AgentClosedError):
        tg.RRef(1)


def test_two_agents_in_one_process_must_be_told_apart():
    with in_process_cluster("a", "b") as (a, b):
        with pytest.raises(AgentClosedError, match=r"several agents \('a', 'b'\).*use\(\)"):
            rpc.get_worker_info()
        with b.use():
            assert rpc.get_worker_info().name == "b"
            with a.use():
                assert rpc.get_worker_info().name == "a"
            assert rpc.get_worker_info().name == "b"
    with pytest.raises(AgentClosedError):
        rpc.get_worker_info()


def test_init_rpc_beside_an_open_agent(workers):
    with pytest.raises(RpcError, match=r"worker 'a' already.*shutdown\(\)"):
        rpc.init_rpc("z", rank=0, world_size=1)


def test_after_the_end(cluster):
    with cluster("a", "b") as (a, _), a.use():
        future = rpc.rpc_async("b", add, (1,))
        assert future.wait() == 1
        reference = rpc.remote("b", add, (1,))
        own = tg.RRef(2)
        rpc.shutdown(graceful=False)
        assert future.wait() == 1
        words = r"worker 'a' cannot be used: it has shut down; call rpc.init_rpc\(...\) again"
        for use in (
            lambda: rpc.rpc_sync("b", add),
            lambda: rpc.remote("b", add),
            lambda: tg.RRef(1),
            reference.to_here,
            own.local_value,
            lambda: reference.rpc_sync().bit_length(),
            rpc.shutdown,
        ):
            with pytest.raises(AgentClosedError, match=words):
                use()
        reference.release()
        del own


# -- what is left


class Thing:
    pass


def test_nothing_keeps_arguments_and_results(workers, until, no_collector):
    kept = weakref.WeakSet()

    def watched(value):
        kept.add(value)
        return value

    for _ in range(30):
        rpc.rpc_sync("a", add, ([watched(Thing())], []))
        rpc.rpc_async("b", len, ([watched(Thing())],)).then(lambda done: done.value()).wait()
        with pytest.raises(TypeError):
            rpc.rpc_sync("b", len, (watched(Thing()),))
    until(lambda: len(kept) == 0)


def test_debug_info(workers, until):
    gate = threading.Event()
    Gates.gates["x"] = gate
    future = rpc.rpc_async("b", wait_at, ("x",))
    info = rpc.debug_info()
    assert (info["worker"], info["rank"], info["pending_calls"]) == ("a", 0, 1)
    assert info["pending"] == ["the call of wait_at on worker 'b'"]
    gate.set()
    future.wait()
    until(lambda: rpc.debug_info()["peers"]["b"]["state"] == "connected")
    assert rpc.debug_info()["peers"]["c"]["state"] == "not dialed"
    until(lambda: workers[1].debug_info()["serving"] == 0)


class Gates:
    gates = {}  # noqa: RUF012


def wait_at(name):
    assert Gates.gates[name].wait(30)


def test_time_outs_of_the_agent(workers):
    assert rpc.get_rpc_timeout() == 30
    rpc._set_rpc_timeout(7)
    assert rpc.get_rpc_timeout() == 7.0
    for wrong in (-1, "x", None):
        with pytest.raises(ValueError, match="must be a number of seconds"):
            rpc._set_rpc_timeout(wrong)


def test_gatherings(workers):
    def everywhere(function):
        def run(agent):
            with agent.use():
                return function(agent)

        results = [Future() for _ in workers]
        threads = [
            threading.Thread(target=lambda agent=agent, result=result: result.set_result(run(agent)))
            for agent, result in zip(workers, results)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return [result.wait(0) for result in results]

    for _ in range(5):
        assert everywhere(lambda agent: rpc._all_gather(agent.rank)) == [{"a": 0, "b": 1, "c": 2}] * 3
        everywhere(lambda agent: rpc._barrier())
    with pytest.raises(ValueError, match="worker 'a' is not among"):
        rpc._all_gather(1, ["b", "c"])


def test_wait_all_blocks(workers):
    seen = []
    with rpc._wait_all():
        for number in range(10):
            rpc.rpc_async("b", add, (number,)).add_done_callback(lambda done: seen.append(done.value()))
    assert collect_all([]).wait() == []
    with pytest.raises(ZeroDivisionError), rpc._wait_all():
        rpc.rpc_async("b", divide, (1, 0))


def divide(first, second):
    return first / second


def test_a_repeated_request_runs_once_and_leaves_nothing(cluster, monkeypatch, until):
    """The second copy comes while the first waits for a thread."""
    with cluster("a", "b") as (a, b), a.use():
        accept = b.server.accept

        def twice(call, peer):
            again = copy.copy(call)
            with monkeypatch.context() as patch:
                tasks = []
                patch.setattr(b.threads.functions, "submit", tasks.append)
                accept(call, peer)
                accept(again, peer)
            for task in tasks:
                b.threads.functions.submit(task)

        monkeypatch.setattr(b.server, "accept", twice)
        assert rpc.rpc_sync("b", len, ([1, 2],)) == 2
        until(lambda: b.debug_info()["serving"] == 0)
