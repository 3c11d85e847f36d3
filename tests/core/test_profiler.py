"""The profiler: operations of both passes, ranges, futures, memory, threads, and what comes out."""

import json
import threading

import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core.futures import Future
from telegrad.core.profiler import profile, record_function


def names(profiled):
    return [event.name for event in profiled.function_events]


def test_operations_of_both_passes():
    a = tg.ones(2, 3, requires_grad=True)
    with profile(record_shapes=True) as profiled:
        (a.exp() * a).sum().backward()
    a.exp()  # not any more
    assert names(profiled)[:3] == ["aten::exp", "aten::mul", "aten::sum"]
    assert set(names(profiled)[3:]) == {"SumBackward", "MulBackward", "ExpBackward"}
    first, second = profiled.function_events[:2]
    assert first.input_shapes == ((2, 3),) and first.count == 1
    assert first.time_range.end <= second.time_range.start and first.time_range.elapsed_us() == pytest.approx(
        first.cpu_time
    )
    assert all(event.end is not None and event.duration >= 0 for event in profiled.function_events)
    assert not a.grad.requires_grad


def test_ranges_hold_what_ran_in_them():
    @record_function("decorated")
    def work():
        return tg.ones(3).exp()

    with profile() as profiled:
        with record_function("outer"), record_function("inner"):
            tg.ones(3).log()
        work()
    assert names(profiled) == ["outer", "inner", "aten::ones", "aten::log", "decorated", "aten::ones", "aten::exp"]
    outer, inner, ones, log = profiled.function_events[:4]
    assert outer.children == inner.duration and inner.children == ones.duration + log.duration
    assert outer.self_time == outer.duration - inner.duration
    with record_function("nobody listens"):
        pass


def test_a_hand_made_future_ends_its_event():
    future = Future()
    with profile() as profiled:
        with record_function("call") as record:
            result = record._call_end_callbacks_on_future(future)
        (event,) = profiled.function_events
        assert event.end is None and not result.done()
        future.set_result(5)
    assert result.wait(1) == 5 and event.end is not None and event.is_async


def test_a_failed_future_ends_it_too():
    future = Future()
    with profile() as profiled, record_function("call") as record:
        result = record._call_end_callbacks_on_future(future)
    future.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        result.wait(1)
    assert profiled.function_events[0].end is not None


def test_memory_is_counted_until_it_is_released():
    with profile(profile_memory=True) as profiled:
        y = tg.ones(256, dtype=tg.float64).exp()
        z = y.reshape(16, 16)  # no memory of its own
        del y, z
    assert [event.size for event in profiled.memory_events] == [2048, 2048, -2048, -2048], "of ones() and of exp()"
    assert profiled.function_events[0].memory == 2048


def test_memory_of_both_passes_comes_and_goes():
    a = tg.ones(1000, dtype=tg.float64, requires_grad=True)
    with profile(profile_memory=True) as profiled:
        loss = (a.exp() * a).sum()
        sizes = [event.size for event in profiled.memory_events]
        assert sizes == [8000, 8000, 8, -8000], (
            "exp, mul and sum; the graph keeps what exp made, and nobody what mul made"
        )
        loss.backward()
        of_backward = [event.memory for event in profiled.function_events if event.backward]
        assert max(of_backward) >= 8000
        del loss
        a.grad = None
    assert sum(event.size for event in profiled.memory_events) == 0
    assert {event.size > 0 for event in profiled.memory_events} == {True, False}
    times = [event.time for event in profiled.memory_events]
    assert times == sorted(times)


def test_memory_is_noted_once_and_only_when_it_is_new():
    x = tg.ones(256, dtype=tg.float64)
    with profile(profile_memory=True) as profiled:
        x.add_(1)  # in place
        x.exp_()
        same = x.contiguous()
        parts = same.split(128), same.T, same.detach()
        made = tg.softmax(x, 0)
        made.mul_(2)
        tg.exp(x, out=made)
    kept = [event.size for event in profiled.memory_events if event.size == 2048]
    assert sum(event.size for event in profiled.memory_events) == 2048 and parts
    assert len(kept) <= 2, "made, and what exp needed until it was written into made"
    with profile(profile_memory=True) as profiled:
        tg.cat([x, x]).var()
    sizes = [event.size for event in profiled.memory_events]
    assert sizes.count(4096) == sizes.count(-4096) == 1, "what operations are made of is not counted twice"


def test_custom_functions_and_layers_have_their_own_events():
    class Twice(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    a, layer = tg.ones(1, 2, 3, requires_grad=True), nn.GRU(3, 4)
    with profile() as profiled:
        output, _ = layer(Twice.apply(a))
        output.sum().backward()
    twice, inner = profiled.function_events[:2]
    assert (twice.name, inner.name) == ("Twice", "aten::mul") and twice.children == inner.duration
    assert {"aten::gru_layer", "GruBackward", "TwiceBackward"} <= set(names(profiled))


def test_other_threads_are_not_noted():
    with profile() as profiled:
        thread = threading.Thread(target=lambda: tg.ones(2).exp())
        thread.start()
        thread.join()
        tg.ones(2).log()
    assert names(profiled) == ["aten::ones", "aten::log"]


def test_tables():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    with profile(record_shapes=True) as profiled:
        for rows in (2, 2, 5):
            model(tg.ones(rows, 4))
    sums = {row.key: row for row in profiled.key_averages()}
    assert sums["aten::linear"].count == 3
    assert sums["aten::tanh"].cpu_time == pytest.approx(sums["aten::tanh"].cpu_time_total / 3)
    by_shape = {(row.key, row.count) for row in profiled.key_averages(group_by_input_shape=True)}
    assert {("aten::tanh", 2), ("aten::tanh", 1)} <= by_shape
    assert str(profiled) == profiled.table() == str(profiled.key_averages())
    text = profiled.key_averages().table(sort_by="self_cpu_time_total", row_limit=1)
    assert text.splitlines()[0].startswith("name") and "self CPU time in all" in text and len(text.splitlines()) == 5
    with pytest.raises(ValueError, match="sort_by must be one of"):
        profiled.table("cuda_time")


def test_chrome_trace(tmp_path):
    a = tg.ones(2, requires_grad=True)
    with profile(profile_memory=True) as profiled:
        a.exp().sum().backward()
    profiled.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    calls = [event for event in events if event["ph"] == "X"]
    assert {event["cat"] for event in calls} == {"forward", "backward"}
    assert {"name", "ts", "dur", "pid", "tid"} <= calls[0].keys()
    assert [event for event in events if event["ph"] == "C"]


def test_callers_can_be_noted_and_it_can_be_switched_off():
    with profile(with_stack=True) as profiled:
        tg.ones(2).exp()
    assert any("tests/core/test_profiler.py" in line for line in profiled.function_events[0].stack)
    with profile(enabled=False) as profiled:
        tg.ones(2).exp()
    assert profiled.function_events == []


def test_an_error_leaves_the_profile_whole():
    with profile() as profiled, pytest.raises(ValueError, match="add"):
        tg.ones(2) + tg.ones(3)
    assert names(profiled) == ["aten::ones", "aten::ones", "aten::add"] and profiled.function_events[2].end is not None


def test_the_profiler_is_where_pytorch_has_it_too():
    assert tg.autograd.profiler.profile is tg.profiler.profile
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tg.autograd.nothing  # noqa: B018
