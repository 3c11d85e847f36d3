"""Profiles across workers: what each kind of call records, its names, and what comes back."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import telegrad as tg
from helpers.trace_rules import broken_rules
from telegrad import autograd_dist, rpc
from telegrad.base.errors import RpcTimeoutError, SerializationError
from telegrad.core.interception import entered
from telegrad.profiler import merge_traces, profile, record_function
from telegrad.rpc.extend import current_agent
from telegrad.testing import in_process_cluster


@pytest.fixture
def workers():
    with in_process_cluster("worker0", "worker1", "worker2") as agents, agents[0].use():
        yield agents
    assert not entered, "a profile of a request was not left"


gate = threading.Event()


def wait_for_gate():
    gate.wait(10)


def product(x, y):
    with record_function("inside"):
        return x @ y


def relay(to, x):
    return rpc.rpc_sync(to, product, (x, x)) + 1


def raise_error(x):
    x.exp()
    raise ValueError("no")


@rpc.functions.async_execution
def add_later(to, x):
    return rpc.rpc_async(to, tg.add, (x, x)).then(lambda done: done.wait().exp())


async def add_in_loop(to, x):
    with record_function("task"):
        await asyncio.sleep(0)
        return (await rpc.rpc_async(to, tg.add, (x, x))).exp()


class Actor:
    def __init__(self):
        self.weight = tg.ones(3)

    def scale(self, x):
        return self.weight * x


def names(profiled):
    return [event.name for event in profiled.function_events]


def find(profiled, name):
    (event,) = [event for event in profiled.function_events if event.name == name]
    return event


def check_tree(profiled):
    """Every event has ended and lies within its parent, on one clock."""
    for event in profiled.function_events:
        assert event.end is not None and event.start <= event.end, event
        if (parent := event.cpu_parent) is not None:
            assert parent.start <= event.start and (
                event.end <= parent.end or (parent.is_async and not parent.blocking)
            )
            assert event in parent.cpu_children


@pytest.mark.parametrize("api", ["rpc_sync", "rpc_async", "rpc_remote"])
def test_a_call_has_what_its_callee_did(workers, api):
    x = tg.ones(2, 2)
    with profile(record_shapes=True, profile_memory=True) as profiled:
        if api == "rpc_remote":
            reference = rpc.remote("worker1", product, (x, x))
            reference._get_profiling_future().wait()
        elif api == "rpc_async":
            rpc.rpc_async("worker1", product, (x, x)).wait()
        else:
            rpc.rpc_sync("worker1", product, (x, x))
    key = f"{api}#product(worker0 -> worker1)"
    assert names(profiled) == [key, f"{key}#remote_call", f"{key}#remote_op: inside", f"{key}#remote_op: aten::matmul"]
    call, served, inside, matmul = profiled.function_events
    assert (call.node_id, call.is_remote, call.is_async) == (0, False, True)
    assert all((event.node_id, event.is_remote) == (1, True) for event in (served, inside, matmul))
    assert matmul.input_shapes == ((2, 2), (2, 2)) and matmul.cpu_memory_usage == 16
    assert matmul.cpu_parent is inside and inside.cpu_parent is served and served.cpu_parent is call
    check_tree(profiled)


def test_fetches_and_methods(workers):
    reference = rpc.remote("worker1", Actor)
    reference._get_future().wait()
    with profile() as profiled:
        reference.rpc_sync().scale(tg.ones(3))
        reference.rpc_async().scale(tg.ones(3)).wait()
        reference.to_here()
    recorded = names(profiled)
    assert "rpc_sync#scale(worker0 -> worker1)#remote_op: aten::mul" in recorded
    assert "rpc_async#scale(worker0 -> worker1)#remote_op: aten::mul" in recorded
    assert "to_here#(worker0)->(worker1)" in recorded
    check_tree(profiled)


def rows(count):
    for number in range(count):
        yield tg.ones(2) * number


async def rows_in_loop(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield tg.ones(2) * number


@pytest.mark.parametrize("function", [rows, rows_in_loop])
@pytest.mark.parametrize("ahead", [0, 8])
def test_each_item_of_a_stream_has_what_made_it(workers, function, ahead):
    with profile() as profiled:
        items = [item.tolist() for item in rpc.stream("worker1", function, (3,), ahead=ahead)]
    assert items == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    key = f"rpc_stream#{function.__name__}(worker0 -> worker1)"
    made = [event for event in profiled.function_events if event.name == f"{key}#remote_op: aten::mul"]
    assert len(made) == 3 and all(event.node_id == 1 for event in made)
    calls = {id(event.cpu_parent.cpu_parent): event.cpu_parent.cpu_parent for event in made}
    assert [call.name for call in calls.values()] == [key] * 3
    check_tree(profiled)


def test_a_stream_that_outlives_a_profile_goes_on(workers):
    stream = rpc.stream("worker1", rows, (4,), ahead=0)
    first = next(stream)
    with profile() as profiled:
        second = next(stream)
    assert [first.tolist(), second.tolist(), *(item.tolist() for item in stream)] == [[n, n] for n in range(4)]
    assert sum("mul" in name for name in names(profiled)) == 1


def test_calls_of_a_callee_return_with_its_own(workers):
    x = tg.ones(2, 2)
    with profile() as profiled, record_function("outer"):
        rpc.rpc_sync("worker1", relay, ("worker2", x))
    key = "rpc_sync#relay(worker0 -> worker1)"
    inner = f"{key}#remote_op: rpc_sync#product(worker1 -> worker2)"
    matmul = find(profiled, f"{inner}#remote_op: aten::matmul")
    assert matmul.node_id == 2 and find(profiled, inner).node_id == 1
    path = []
    while (matmul := matmul.cpu_parent) is not None:
        path.append(matmul.name)
    served = "#remote_call"
    assert path == [f"{inner}#remote_op: inside", inner + served, inner, key + served, key, "outer"]
    assert find(profiled, "outer").self_time < find(profiled, key).duration, "waiting is not its own time"
    check_tree(profiled)


@pytest.mark.parametrize("function", [add_later, add_in_loop])
def test_functions_that_answer_later(workers, function):
    with profile() as profiled:
        assert rpc.rpc_sync("worker1", function, ("worker2", tg.zeros(2))).tolist() == [1.0, 1.0]
    key = f"rpc_sync#{function.__name__}(worker0 -> worker1)#remote_op: "
    assert {f"{key}rpc_async#aten::add(worker1 -> worker2)#remote_op: aten::add", f"{key}aten::exp"} <= set(
        names(profiled)
    )
    assert find(profiled, f"rpc_sync#{function.__name__}(worker0 -> worker1)#remote_call").is_async
    if function is add_in_loop:
        assert find(profiled, f"{key}aten::exp").cpu_parent is find(profiled, f"{key}task")
    check_tree(profiled)


def test_a_call_to_oneself(workers):
    with profile() as profiled:
        rpc.rpc_sync("worker0", product, (tg.ones(2, 2), tg.ones(2, 2)))
    key = "rpc_sync#product(worker0 -> worker0)"
    matmul = find(profiled, f"{key}#remote_op: aten::matmul")
    assert (matmul.is_remote, matmul.node_id) == (True, 0)
    assert names(profiled).count("aten::matmul") == 0


def test_the_backward_of_all_workers(workers):
    weight = tg.ones(2, 2, requires_grad=True)
    with profile() as profiled, autograd_dist.context() as context:
        loss = rpc.rpc_sync("worker1", relay, ("worker2", weight)).sum()
        autograd_dist.backward(context, [loss])
    inside = find(profiled, "torch::distributed::autograd::backward")
    first = find(profiled, "rpc_async#backward(worker0 -> worker1)")
    assert first.cpu_parent is inside and find(profiled, "SumBackward").cpu_parent is inside
    nodes = {(event.node_id, event.name.rpartition(": ")[2]) for event in profiled.function_events if event.backward}
    assert {(0, "SumBackward"), (1, "AddBackward"), (2, "MmBackward")} <= nodes
    assert all(event.end is not None for event in profiled.function_events)


def test_each_thread_has_its_own(workers):
    agent = current_agent()

    def work(function):
        x = tg.ones(2)
        with agent.use(), profile() as profiled:
            for _ in range(20):
                rpc.rpc_sync("worker1", function, (x,))
        return names(profiled)

    with ThreadPoolExecutor(2) as pool:
        exp, log = pool.map(work, (tg.exp, tg.log))
    assert exp == 20 * [
        f"rpc_sync#aten::exp(worker0 -> worker1){end}" for end in ("", "#remote_call", "#remote_op: aten::exp")
    ]
    assert log == [name.replace("exp", "log") for name in exp]


def test_callbacks_belong_to_the_profile_of_their_call(workers):
    with profile() as profiled:
        rpc.rpc_async("worker1", tg.exp, (tg.ones(2),)).then(
            lambda done: rpc.rpc_sync("worker2", tg.log, (done.wait(),))
        ).wait()
    assert "rpc_sync#aten::log(worker0 -> worker2)#remote_op: aten::log" in names(profiled)


def test_a_call_that_raises_has_its_events(workers):
    with profile() as profiled, pytest.raises(ValueError, match="no"):
        rpc.rpc_sync("worker1", raise_error, (tg.ones(2),))
    assert names(profiled)[-1] == "rpc_sync#raise_error(worker0 -> worker1)#remote_op: aten::exp"
    check_tree(profiled)


def test_a_call_that_gets_no_answer_ends(workers):
    with profile() as profiled:
        late = rpc.rpc_async("worker1", wait_for_gate, timeout=0.05)
        told = late.then(lambda done: done.exception())
        assert isinstance(told.wait(), RpcTimeoutError)
    gate.set()
    (event,) = profiled.function_events
    assert event.end is not None


def test_a_call_that_is_not_sent_ends(workers):
    with profile() as profiled, pytest.raises(SerializationError):
        rpc.rpc_sync("worker1", tg.exp, (threading.Lock(),))
    (event,) = profiled.function_events
    assert event.end is not None


def test_nothing_is_recorded_without_a_profile(workers):
    with profile() as profiled:
        pass
    rpc.rpc_sync("worker1", product, (tg.ones(2, 2), tg.ones(2, 2)))
    assert not profiled.function_events and not entered


def test_several_profiles_at_once(workers):
    with profile() as outer:
        rpc.rpc_sync("worker1", tg.exp, (tg.ones(2),))
        with profile(record_shapes=True) as inner:
            rpc.rpc_sync("worker1", product, (tg.ones(2, 2), tg.ones(2, 2)))
    assert names(outer)[-4:] == names(inner)[-4:] and len(names(outer)) > len(names(inner))
    check_tree(outer)
    check_tree(inner)


def test_a_profile_of_all_requests(workers):
    """The example of PyTorch's documentation: two overlapping profiles, entered and left through references."""
    x, y = tg.tensor(1.0), tg.tensor(2.0)
    outer = rpc.remote("worker1", rpc._server_process_global_profile)
    outer.rpc_sync().__enter__()
    rpc.rpc_sync("worker1", tg.add, (x, y))
    inner = rpc.remote("worker1", rpc._server_process_global_profile)
    inner.rpc_sync().__enter__()
    rpc.rpc_sync("worker1", tg.sub, (x, y))
    inner.rpc_sync().__exit__(None, None, None)
    outer.rpc_sync().__exit__(None, None, None)
    rpc.rpc_sync("worker1", tg.mul, (x, y))
    assert [row.key for row in inner.rpc_sync().key_averages()] == ["aten::sub"]
    assert [row.key for row in outer.rpc_sync().key_averages()] == ["aten::add", "aten::sub"]
    profiled = outer.to_here()
    assert [event.node_id for event in profiled.function_events] == [1, 1]
    assert sum(map(len, profiled.process_global_function_events)) == 2


def test_a_profile_of_all_requests_has_ranges_and_calls(workers):
    with workers[1].use(), rpc._server_process_global_profile(record_shapes=True) as profiled:
        with workers[0].use(), profile() as of_caller:
            rpc.rpc_sync("worker1", relay, ("worker2", tg.ones(2, 2)))
        tg.ones(3)  # not a request
    assert {"rpc_sync#product(worker1 -> worker2)#remote_op: inside", "aten::add"} <= set(names(profiled))
    assert "aten::ones" not in names(profiled)
    assert "rpc_sync#relay(worker0 -> worker1)#remote_op: aten::add" in names(of_caller)


def test_the_trace_and_the_table_are_by_worker(workers, tmp_path):
    with profile(profile_memory=True) as profiled:
        rpc.rpc_sync("worker1", relay, ("worker2", tg.ones(2, 2)))
        rpc.rpc_async("worker2", product, (tg.ones(2, 2), tg.ones(2, 2))).wait()
    profiled.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert isinstance(trace, list), "as PyTorch's"
    processes = {row["pid"]: row["args"]["name"] for row in trace if row["name"] == "process_name"}
    assert processes == {0: "worker0 (rank 0)", 1: "worker1 (rank 1)", 2: "worker2 (rank 2)"}
    slices = {(row["pid"], row["name"]) for row in trace if row["ph"] == "X"}
    assert {(0, "rpc_sync#relay(worker0 -> worker1)"), (1, "aten::add"), (2, "aten::matmul")} <= slices
    begins = [row["id"] for row in trace if row["ph"] == "b"]
    assert begins and begins == [row["id"] for row in trace if row["ph"] == "e"]
    assert [row["pid"] for row in trace if row["ph"] in "sf"] == [0, 1, 1, 2]
    sums = {(row.key.rpartition(": ")[2], row.worker): row.count for row in profiled.key_averages()}
    assert sums["aten::add", "worker1"] == 1 and sums["rpc_async#product(worker0 -> worker2)", "worker0"] == 1
    assert profiled.table().split()[1] == "worker"


def test_an_arrow_leads_from_where_a_future_call_was_made(workers, tmp_path):
    with profile() as profiled, record_function("step"):
        rpc.rpc_async("worker2", product, (tg.ones(2, 2), tg.ones(2, 2))).wait()
    profiled.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert [row["pid"] for row in trace if row["ph"] in "sf"] == [0, 2]
    (step,) = [row for row in trace if row["name"] == "step"]
    (begin,) = [row for row in trace if row["ph"] == "s"]
    assert step["ts"] <= begin["ts"] <= step["ts"] + step["dur"] and step["tid"] == begin["tid"]


def test_traces_of_several_workers_are_one_on_one_clock(workers, tmp_path):
    paths = [tmp_path / "0.json", tmp_path / "1.json"]
    for number, path in enumerate(paths):
        with workers[number].use(), profile() as profiled, record_function(f"step{number}"):
            rpc.rpc_sync("worker2", product, (tg.ones(2, 2), tg.ones(2, 2)))
        profiled.export_chrome_trace(path)
    merge_traces(paths, tmp_path / "all.json")
    trace = json.loads((tmp_path / "all.json").read_text())
    first, second = (next(row for row in trace if row["name"] == name) for name in ("step0", "step1"))
    assert (first["pid"], second["pid"]) == (0, 1) and first["ts"] + first["dur"] <= second["ts"]
    arrows = [(row["ph"], row["id"], row["pid"]) for row in trace if row["ph"] in "sf"]
    assert [pid for _, _, pid in arrows] == [0, 2, 1, 2] and len({number for _, number, _ in arrows}) == 2
    assert [*broken_rules(trace)] == []


@pytest.mark.parametrize(
    ("phase", "change"),
    [
        ("X", {"dur": -1}),
        ("X", {"tid": None, "name": None}),
        ("s", {"ts": 0}),
        ("f", {"id": -5}),
        ("M", {"ph": "Q"}),
        ("b", {"id": "other"}),
        ("e", {"ts": 0}),
    ],
)
def test_a_trace_that_breaks_a_rule_is_found(workers, tmp_path, phase, change):
    with profile() as profiled, record_function("step"):
        calls = [rpc.rpc_async("worker2", product, (tg.ones(2, 2), tg.ones(2, 2))) for _ in range(2)]
        assert all(each.wait() is not None for each in calls)
        rpc.rpc_sync("worker2", product, (tg.ones(2, 2), tg.ones(2, 2)))
    profiled.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert [*broken_rules(trace)] == []
    row = next(row for row in reversed(trace) if row["ph"] == phase)
    row.update(change)
    for name in [name for name, value in change.items() if value is None]:
        del row[name]
    assert [*broken_rules(trace)] != []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no trace"),
        ("{}", "a list of events"),
        ("[1]", "a list of events"),
        ("[]", "when it began"),
        ("[" * 10**5, "no trace"),
    ],
)
def test_what_is_no_trace_is_not_merged(tmp_path, text, why):
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(ValueError, match=why):
        merge_traces([tmp_path / "trace.json"], tmp_path / "all.json")
    with pytest.raises(ValueError, match="got no trace"):
        merge_traces([], tmp_path / "all.json")


def test_the_nodes_of_messages_are_events_of_the_backward(workers):
    x = tg.ones(2, requires_grad=True)
    with autograd_dist.context() as context, profile() as profiled:
        loss = rpc.rpc_sync("worker1", tg.mul, (x, x)).sum()
        autograd_dist.backward(context, [loss])
    nodes = [
        (event.name.rpartition("::")[2], event.node_id)
        for event in profiled.function_events
        if "RpcBackward" in event.name
    ]
    assert sorted(nodes) == [
        ("RecvRpcBackward", 0),
        ("RecvRpcBackward", 1),
        ("SendRpcBackward", 0),
        ("SendRpcBackward", 1),
    ]
    check_tree(profiled)
