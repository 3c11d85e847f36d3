"""Spans of calls for OpenTelemetry: one at the caller, one at the callee, whose parent is the caller's.

The trace context travels as W3C writes it (``traceparent``, ``tracestate``), as an extra of the request. An agent that does
not trace has no interceptor for it, and ignores the extra of an agent that does.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ..calls.server_call import ServerCall
from ..current import current_agent
from ..wire.header import Flag, FrameKind
from ..wire.messages import Interceptor, Method

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

    from ..agent import Agent
    from ..calls.handed_on import CallKey
    from ..wire.messages import Incoming, Outgoing

TRACE_EXTRA = 5
MOST_TRACE_BYTES = 2048  # of an extra that arrives; a tracestate has at most 512 characters
FAILED_MARK = b"failed"  # extra of an answer that is an exception
UNTRACED = (Method.PULL, Method.EXPLAIN, Method.OBSERVE)
FIELDS = ("traceparent", "tracestate")


def trace_calls(tracer_provider: TracerProvider | None = None) -> None:
    """Make spans of the calls that this worker makes and serves from now on, by OpenTelemetry.

    Each worker of the job that calls it takes part in the traces. Spans go where the program has told the SDK of
    OpenTelemetry to send them; without an SDK none are made. A second call changes nothing.

    Args:
        tracer_provider: makes the spans; the program's global one by default.

    Raises:
        ImportError: OpenTelemetry's API is not installed.
    """
    agent = current_agent()
    if not any(each.number == TRACE_EXTRA for each in agent.codec.interceptors):
        agent.codec.intercept(*agent.codec.interceptors, TracingInterceptor(agent, tracer_provider))


class TracingInterceptor(Interceptor):
    """Makes the spans of one agent's calls, and lets their context travel.

    A span of the caller ends in a thread for callbacks, because an exporter may block, and a reader must not.
    """

    number = TRACE_EXTRA
    plain = True

    def __init__(self, agent: Agent, tracer_provider: TracerProvider | None) -> None:
        try:
            from opentelemetry import context, trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise ImportError(
                f"trace_calls() needs the package opentelemetry-api ({error}); pip install opentelemetry-api",
                name="opentelemetry",
            ) from None
        self._agent = agent
        self._context, self._trace = context, trace
        self._propagator = TraceContextTextMapPropagator()
        self._tracer = trace.get_tracer("telegrad.rpc", tracer_provider=tracer_provider)
        self._made: dict[int, Span] = {}  # by the id of the call
        self._serving: dict[CallKey, tuple[ServerCall, Span]] = {}

    def sending(self, message: Outgoing) -> None:
        """Begin the span of a call and send its context along; or end the span of a request that is answered."""
        if message.kind != FrameKind.REQUEST:
            if (served := self._serving.pop((message.to, message.call_id), None)) is not None:
                failed = bool(message.flags & Flag.ERROR)
                _end_served(*served, self._error() if failed else None)
                if failed:
                    message.tell(TRACE_EXTRA, FAILED_MARK)
        elif message.method not in UNTRACED:
            self._begin(message)

    def _begin(self, message: Outgoing) -> None:
        callee = self._agent.peers.at(message.to).info.name
        attributes = {"rpc.system": "telegrad", "telegrad.worker": self._agent.name, "telegrad.callee": callee}
        span = self._tracer.start_span(_name(message.what), kind=self._trace.SpanKind.CLIENT, attributes=attributes)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._trace.set_span_in_context(span))
        if "traceparent" in carrier:  # else the program has no SDK
            self._made[message.call_id] = span
            message.tell(TRACE_EXTRA, "\n".join(carrier.get(field, "") for field in FIELDS).encode())

    # -- at the callee

    def opening(self, message: Incoming) -> None:
        """Begin the span of a request; it is the current one where the request is served."""
        data = message.extras[TRACE_EXTRA]
        if not isinstance(message, ServerCall) or len(data) > MOST_TRACE_BYTES:
            return
        carrier = dict(zip(FIELDS, data.decode("ascii", "replace").split("\n")))
        caller = message.caller.name
        attributes = {"rpc.system": "telegrad", "telegrad.worker": self._agent.name, "telegrad.caller": caller}
        parent = self._propagator.extract(carrier, self._context.Context())
        span = self._tracer.start_span("request", parent, self._trace.SpanKind.SERVER, attributes)
        self._serving[message.key] = message, span
        # Not detached: the context is the request's own, and its callbacks and coroutines take part in the trace.
        self._context.attach(self._trace.set_span_in_context(span))

    def served(self, message: Incoming) -> None:
        """End the span of a request that is not answered."""
        assert isinstance(message, ServerCall)
        if (served := self._serving.pop(message.key, None)) is not None:
            _end_served(*served, None)

    # -- at the caller

    def arrived(self, message: Incoming) -> bool:
        """Note that a call has failed at its callee. The request of a caller that traces has its context here."""
        if message.kind == FrameKind.REPLY and (span := self._made.get(message.call_id)) is not None:
            span.set_status(self._error())
        return True

    def delivered(self, message: Outgoing) -> None:
        """End the span of a call that was answered."""
        if message.kind == FrameKind.REQUEST and (span := self._made.pop(message.call_id, None)) is not None:
            self._agent.threads.run_later(partial(span.end, time.time_ns()))

    def not_delivered(self, message: Outgoing) -> None:
        """End the span of a call that failed without an answer."""
        if message.kind == FrameKind.REQUEST and (span := self._made.pop(message.call_id, None)) is not None:
            span.set_status(self._error())
            self._agent.threads.run_later(partial(span.end, time.time_ns()))

    def _error(self) -> Any:
        return self._trace.Status(self._trace.StatusCode.ERROR)


def _name(what: object) -> str:
    return str(what).removeprefix("the ").split(" on worker ")[0]


def _end_served(call: ServerCall, span: Span, status: Any) -> None:
    if call.what:
        span.update_name(call.what)
    if status is not None:
        span.set_status(status)
    span.end()
