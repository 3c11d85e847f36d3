"""States of a call, at the caller and at the callee: the tables of their transitions.

``CALLING`` is the life of a message that a worker sends, a request or an answer (``messages.py``). Flow control and the lanes
set its state where the event happens; a test checks the changes against the table. ``SERVING`` is the life of a request that
a worker serves (``calls/server_call.py``). A state of it has the states that follow as attributes, so that a transition is
``call.state.start``. ``docs/design/rpc_states.md`` has the same tables, and a test compares them.
"""

from __future__ import annotations


class CallState:
    """State of a message that a worker sends."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


NEW = CallState("new")  # it has no room in a window
QUEUED = CallState("queued")  # it waits for room
ADMITTED = CallState("admitted")  # it has room, and no lane has it
WRITTEN = CallState("written")  # a lane has it: it may wait there, or have left
ANSWERED_CALL = CallState("answered")
FAILED = CallState("failed")
WITHDRAWN = CallState("withdrawn")  # nothing of it has left, or will

CALLING: dict[tuple[CallState, str], CallState] = {
    (NEW, "queue"): QUEUED,
    (NEW, "admit"): ADMITTED,
    (NEW, "fail"): FAILED,
    (QUEUED, "admit"): ADMITTED,
    (QUEUED, "withdraw"): WITHDRAWN,
    (QUEUED, "refuse"): NEW,  # the session has ended
    (ADMITTED, "write"): WRITTEN,
    (ADMITTED, "refuse"): NEW,
    (ADMITTED, "withdraw"): WITHDRAWN,
    (WRITTEN, "refuse"): ADMITTED,  # the lane gives it back, with its room
    (WRITTEN, "write"): WRITTEN,
    (WRITTEN, "withdraw"): WITHDRAWN,
    (WRITTEN, "answer"): ANSWERED_CALL,
    (WRITTEN, "fail"): FAILED,
}


class ServingState:
    """State of a request that a worker serves. Its attributes are the states after each event.

    An event that has no entry in the table cannot happen; it raises ``AttributeError``.

    Attributes:
        start: a thread takes it, and its handler is called.
        stream: it opens a stream of items.
        park: its handler has returned, and the answer comes later.
        answer: it is answered, with a value or an exception; in a stream, with the first item.
        drop: it is over: its caller gave up before it ran, no answer could be sent, or it was answered before.
        end: the generator of its stream has ended.
    """

    __slots__ = ("answer", "drop", "end", "name", "park", "start", "stream")

    start: ServingState
    stream: ServingState
    park: ServingState
    answer: ServingState
    drop: ServingState
    end: ServingState

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


WAITING = ServingState("waiting")  # for the owners of its references, for answers to its caller to leave, for a thread
RUNNING = ServingState("running")  # its handler runs
PARKED = ServingState("parked")  # its handler has returned, and a future has the answer
STREAMING = ServingState("streaming")  # it opens a stream, whose first item is not answered yet
ANSWERED = ServingState("answered")  # its stream goes on
ENDED = ServingState("ended")

SERVING: dict[tuple[ServingState, str], ServingState] = {
    (WAITING, "start"): RUNNING,
    (WAITING, "answer"): ENDED,  # refused: there is no thread
    (WAITING, "drop"): ENDED,
    (RUNNING, "stream"): STREAMING,
    (RUNNING, "park"): PARKED,
    (RUNNING, "answer"): ENDED,
    (RUNNING, "drop"): ENDED,
    (RUNNING, "end"): RUNNING,  # told again: the stream was closed before its first item
    (PARKED, "park"): PARKED,
    (PARKED, "answer"): ENDED,
    (PARKED, "drop"): ENDED,
    (STREAMING, "answer"): ANSWERED,
    (STREAMING, "drop"): ANSWERED,
    (STREAMING, "end"): RUNNING,  # closed before its first item: it is answered as a call is
    (ANSWERED, "answer"): ANSWERED,  # a second answer is not sent
    (ANSWERED, "drop"): ANSWERED,
    (ANSWERED, "end"): ENDED,
    (ENDED, "park"): ENDED,  # its future was complete
    (ENDED, "answer"): ENDED,
    (ENDED, "drop"): ENDED,
    (ENDED, "end"): ENDED,
}
for (_state, _event), _then in SERVING.items():
    setattr(_state, _event, _then)
