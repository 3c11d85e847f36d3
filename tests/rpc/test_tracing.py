"""Spans of calls: one trace over three workers, read with the in-memory exporter of OpenTelemetry's SDK."""

import sys

import pytest
from helpers.threads import until
from telegrad import rpc
from telegrad.testing import in_process_cluster

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span


@pytest.fixture
def traced():
    """Return a provider, and a function that returns so many spans when they have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def spans(count):
        until(lambda: len(exporter.get_finished_spans()) >= count)
        found = exporter.get_finished_spans()
        assert len(found) == count
        return sorted(found, key=lambda span: span.start_time)

    yield provider, spans
    provider.shutdown()


def trace(provider, *agents):
    for agent in agents:
        with agent.use():
            rpc.trace_calls(provider)


def relay():
    return rpc.rpc_sync("c", add, args=(1, 2))


def add(a, b):
    return a + b


def nothing():
    return None


def fail():
    raise ValueError("no")


def current_trace():
    return get_current_span().get_span_context().trace_id


def test_a_call_over_three_workers_is_one_trace(traced):
    provider, spans = traced
    with in_process_cluster("a", "b", "c") as (a, b, c), a.use():
        trace(provider, a, b, c)
        with provider.get_tracer("test").start_as_current_span("step"):
            assert rpc.rpc_sync("b", relay) == 3
        step, call, served, inner, last = spans(5)
    assert len({span.context.trace_id for span in (step, call, served, inner, last)}) == 1
    parents = [span.parent.span_id for span in (call, served, inner, last)]
    assert parents == [span.context.span_id for span in (step, call, served, inner)]
    assert [span.name for span in (call, served, inner, last)] == ["call of relay", "relay", "call of add", "add"]
    kinds = [SpanKind.CLIENT, SpanKind.SERVER] * 2
    assert [span.kind for span in (call, served, inner, last)] == kinds
    assert [span.attributes["telegrad.worker"] for span in (call, served, inner, last)] == ["a", "b", "b", "c"]
    assert call.start_time <= served.start_time <= inner.start_time and last.end_time <= inner.end_time


def test_user_code_sees_the_span_and_an_answer_of_none_ends_it(traced):
    provider, spans = traced
    with in_process_cluster("a", "b") as (a, b), a.use():
        trace(provider, a, b)
        seen = rpc.rpc_sync("b", current_trace)
        assert rpc.rpc_sync("b", nothing) is None
        first, *_ = spans(4)
    assert seen == first.context.trace_id


def test_a_failed_call_has_an_error_at_both_ends(traced):
    provider, spans = traced
    with in_process_cluster("a", "b") as (a, b), a.use():
        trace(provider, a, b)
        with pytest.raises(ValueError, match="no"):
            rpc.rpc_sync("b", fail)
        assert [span.status.status_code for span in spans(2)] == [StatusCode.ERROR] * 2


def test_one_end_may_trace_alone(traced):
    provider, spans = traced
    with in_process_cluster("a", "b") as (a, b), a.use():
        trace(provider, a)
        assert rpc.rpc_sync("b", add, args=(1, 2)) == 3
        (call,) = spans(1)
        with b.use():
            assert rpc.rpc_sync("a", add, args=(1, 2)) == 3
        assert call.kind is SpanKind.CLIENT and len(spans(1)) == 1


def test_without_it_a_call_has_no_further_interceptor_and_a_second_call_adds_none(traced):
    provider, _ = traced
    with in_process_cluster("a") as (a,), a.use():
        before = a.codec.interceptors
        rpc.trace_calls(provider)
        rpc.trace_calls(provider)
        assert len(a.codec.interceptors) == len(before) + 1


@pytest.mark.parametrize("data", [b"", b"\xff" * 20, b"00-0-0-0", b"\n" * 100, b"x" * 10_000])
def test_a_context_that_is_none_is_ignored(traced, data):
    provider, spans = traced
    with in_process_cluster("a", "b") as (a, b), a.use():
        trace(provider, a, b)
        (interceptor,) = [each for each in a.codec.interceptors if each.number == 5]
        interceptor._begin = lambda message: message.tell(5, data)
        assert rpc.rpc_sync("b", add, args=(1, 2)) == 3
        assert [span.parent for span in spans(len(data) <= 2048)] == [None] * (len(data) <= 2048)


def test_a_missing_library_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with in_process_cluster("a") as (a,), a.use(), pytest.raises(ImportError, match=r"pip install opentelemetry-api"):
        rpc.trace_calls()
