"""Records of an observation: what one worker did at one moment.

A list holds at most ``MOST_ROWS`` rows, and a text ``MOST_CHARACTERS``; ``Observation.totals`` has the numbers without bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

MOST_ROWS = 1000
MOST_CHARACTERS = 500
OBSERVED_PARTS = ("calls", "requests", "owned", "held", "contexts", "links", "threads", "gatherings", "logged", "loops")
ALL_PARTS = frozenset(OBSERVED_PARTS)


@dataclass(frozen=True, slots=True)
class ObservedFrame:
    """Frame of a thread's stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class ObservedWait:
    """Wait of a thread, a coroutine or a generator, as its frames tell it.

    Attributes:
        kind: "future", "window" (room on the way to a worker), "lock", "thread", "queue", "event", "condition", "sleep",
            "debugger" (it holds the thread), "socket", "output" (it writes), "process", "shutdown", "loop" (of coroutines),
            "await", "consumer" (of a generator's items), "collective" or "observation".
        name: its text in the program, such as ``self.lock``; of "window" and "consumer", the worker's name; of "collective",
            the call. Empty if it has none.
        object: the lock's number in its process; 0 for other kinds.
        calls: ids of this worker's calls under way whose answers it waits for.
        thread: number of the thread that holds the lock, or that is to end, if the object itself tells it; 0 if not.
        workers: of "collective", names of the workers whose part is missing.
    """

    kind: str
    name: str = ""
    object: int = 0
    calls: list[int] = field(default_factory=list)
    thread: int = 0
    workers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedThread:
    """Thread of Python; or a coroutine or a generator that is suspended, which has a stack as well.

    Attributes:
        ident: number of the thread in its process; of a coroutine or a generator, that of the object.
        stack: its frames, the innermost last.
        waits: it waits for a future, or for room for a message.
        waits_for: id of the call under way whose answer it waits for, if that is known.
        serves: caller's number and id of the request that it serves; empty if it serves none.
        kind: "thread", "coroutine" or "generator".
        main: it is the main thread of its process.
        at: the innermost frame of the program's own code, outside this package and the standard library.
        wait: its wait; None if it computes, or nothing tells.
        loop: of a coroutine, the number of the thread that runs its event loop.
        holds: numbers of the locks that it holds, of those that other threads wait for; inferred from its ``with`` statements.
    """

    ident: int
    name: str
    stack: list[ObservedFrame]
    waits: bool = False
    waits_for: int | None = None
    serves: list[int] = field(default_factory=list)
    kind: str = "thread"
    main: bool = False
    at: ObservedFrame | None = None
    wait: ObservedWait | None = None
    loop: int = 0
    holds: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """Call under way, at its caller.

    Attributes:
        call_id: its id at the caller.
        to: name of the callee; empty for a wait for several workers or for this one.
        what: a text that names it.
        seconds: for how long it has waited.
        timeout: its time-out in seconds; 0 for none.
        state: where it is (``docs/design/rpc_states.md`` has the table).
        calls: of a wait, ids of the calls whose answers end it.
    """

    call_id: int
    to: str
    what: str
    seconds: float
    timeout: float
    state: str
    calls: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """Request that a worker serves.

    Attributes:
        sender: name of the caller.
        sender_number: number of the caller.
        call_id: id of the call at the caller.
        what: a text that names it; empty until it has started.
        state: where it is (``docs/design/rpc_states.md`` has the table).
        cancelled: its caller has given up.
        calls: ids of this worker's calls whose answers it waits for without a thread.
    """

    sender: str
    sender_number: int
    call_id: int
    what: str
    state: str
    cancelled: bool
    calls: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedReference:
    """Reference that a worker owns or holds.

    Attributes:
        rref_id: id of the reference in the job.
        owner: name of its owner.
        type: type of the value; empty if it is not known here.
        bytes: size of the value; None if it is not known.
        made: the value is there.
        holders: at the owner, names of the workers that hold it.
        maker: at the owner, caller's number and id of the request that makes the value; empty if it has not arrived or ended.
        calls: at the owner, ids of its waits for the value.
        requests: at the owner, caller's number and id of each request that waits for the value without a thread.
        where: line of this worker's program that made the reference, if it did and that is recorded
            (``GrpcRpcBackendOptions.rref_places``).
    """

    rref_id: str
    owner: str
    type: str
    bytes: int | None
    made: bool
    holders: list[str] = field(default_factory=list)
    maker: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    requests: list[list[int]] = field(default_factory=list)
    where: ObservedFrame | None = None


class ObservedReferences(NamedTuple):
    """References of one kind: the ``rows`` that an observation shows, ``MOST_ROWS`` at most, and how many there are."""

    rows: list[ObservedReference]
    total: int


@dataclass(frozen=True, slots=True)
class ObservedNodes:
    """Nodes of one operation in a backward on a worker: how many there are, and how many have run."""

    name: str
    count: int
    done: int


@dataclass(frozen=True, slots=True)
class ObservedEdge:
    """Messages between a worker and another whose tensors require grad, in a backward.

    Attributes:
        to: name of the other worker.
        sent: messages to it.
        fed: those of them whose gradients have come back, or whose receiver said that they take no part.
        received: messages from it.
        given: those of them whose gradients were computed; they are sent to it.
    """

    to: str
    sent: int = 0
    fed: int = 0
    received: int = 0
    given: int = 0


@dataclass(frozen=True, slots=True)
class ObservedPass:
    """Part of a backward on one worker.

    Attributes:
        root: name of the worker that began it.
        number: its number there.
        state: "works", "waits" for other workers, "idle" until gradients come, "over" or "failed". Only the root knows when
            it is over.
        nodes, done: how many nodes it has reached on this worker, and how many of them have run.
        running: name of the node that runs; empty if none does.
        failure: the error with which it failed; empty if it has not.
        operations: its nodes by operation, those with the most nodes that have not run first.
        edges: to the other workers of its context.
    """

    root: str
    number: int
    state: str
    nodes: int = 0
    done: int = 0
    running: str = ""
    failure: str = ""
    operations: list[ObservedNodes] = field(default_factory=list)
    edges: list[ObservedEdge] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedContext:
    """Context of distributed autograd that is live on a worker.

    Attributes:
        context_id: its id in the job.
        creator: name of the worker that made it.
        workers: names of the workers from which this one got it and to which it gave it.
        passes: its backwards that go on here, and the last one that is over.
    """

    context_id: int
    creator: str
    workers: list[str]
    passes: list[ObservedPass] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedGathering:
    """Round of ``_barrier`` or ``_all_gather`` that is not complete, at the worker that leads it.

    Attributes:
        missing: names of the workers that have not called it.
        requests: caller's number and id of each request that waits for it.
        calls: ids of this worker's waits for it.
    """

    missing: list[str]
    requests: list[list[int]]
    calls: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ObservedLink:
    """Link to another worker.

    Attributes:
        to: name of the other worker.
        state: "connected", "connecting", "not dialed", "dialed by the other worker", or why it is cut or the worker gone.
        lane: the lane of the dialed session; empty if there is none.
        in_flight_bytes, in_flight_messages: sent and not read at the other end, on all sessions.
        queued_bytes, queued_messages: wait for room, on all sessions.
        unacknowledged: control messages that were not acknowledged.
        sent_bytes, sent_messages: sent so far, on the sessions that are open.
        received_bytes, received_messages: received and used so far, likewise.
        round_trip_seconds: from the latest control message to its acknowledgement; None if there was none.
    """

    to: str
    state: str
    lane: str
    in_flight_bytes: int
    in_flight_messages: int
    queued_bytes: int
    queued_messages: int
    unacknowledged: int
    sent_bytes: int = 0
    sent_messages: int = 0
    received_bytes: int = 0
    received_messages: int = 0
    round_trip_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ObservedSeries:
    """Values that the process of a worker logged under one name. Values that are no finite numbers are None here.

    Attributes:
        name: its name.
        count: how many values were logged.
        step: the step of the last value.
        last: the last value.
        seconds: time since it was logged.
        steps, values: of all values a part that is spread evenly, and the last one.
        first_not_finite: step of the first value that was infinite or nan; None if all were finite.
    """

    name: str
    count: int
    step: int
    last: float | None
    seconds: float
    steps: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    first_not_finite: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedLoop:
    """Loop over ``progress`` in the process of a worker.

    Attributes:
        description: the program's name for it; may be empty.
        done: items that it has finished.
        total: number of items; None if it is not known.
        seconds: for how long it has run.
        rate: items a second, over all its time.
        ended: it has ended.
    """

    description: str
    done: int
    total: int | None
    seconds: float
    rate: float
    ended: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """State of one worker when it was asked. A list that was not asked for (``OBSERVED_PARTS``) is empty.

    Attributes:
        worker: its name.
        number: its number, in messages and ids.
        rank: its rank.
        error: why it did not answer; empty if it did. Then the rest is empty, but ``seen_by``.
        seen_by: of a worker that did not answer: by name of another worker, the state of that worker's link to it.
        answer_seconds: time between question and answer.
        host, process_id, python: its machine, process and version.
        memory_bytes: resident memory of the process.
        spilled_bytes: of arrays that lie in a file, beyond ``memory_budget``.
        cpu_seconds: processor time that the process has used.
        interpreter_wait_seconds: how long a thread waited for the interpreter: 5 ms or more while others compute in Python.
        pool_threads, pool_busy, pool_waiting: threads for user functions, those that run, and requests that wait for one.
        calls_made: requests that it has sent so far, of all kinds.
        requests_accepted: requests that have arrived so far, of all kinds.
        on_the_way_bytes: bytes to all workers that were sent and not read, or wait for room.
        oldest_call_seconds: age of the oldest call under way; 0 if there is none.
        totals: by name of a list below, how many there are. Of lists that were not asked for, only "calls", "requests",
            "owned" and "threads" are counted.
        calls: calls under way that it made, the oldest first.
        requests: requests that it serves.
        owned: references that it owns, the largest first.
        held: references of other owners that it holds.
        contexts: live contexts.
        links: its links to other workers.
        threads: its threads, and coroutines and generators that are suspended.
        gatherings: rounds that it leads.
        shutdown_waits: names of the workers for which it waits in ``shutdown``; empty if it does not.
        in_shutdown: it has called ``shutdown``.
        process_state: of a worker that did not answer and runs on the asker's machine: "stopped", "running", "sleeping",
            "in the kernel", "dead" or "gone"; "joining" while it waits in ``init_rpc``; empty if it is not known.
        logged: what its process logged by ``telegrad.log``, by name; the other workers in the process show the same.
        loops: loops over ``telegrad.progress`` in its process.
    """

    worker: str
    number: int
    rank: int
    error: str = ""
    seen_by: dict[str, str] = field(default_factory=dict)
    answer_seconds: float = 0.0
    host: str = ""
    process_id: int = 0
    python: str = ""
    memory_bytes: int = 0
    spilled_bytes: int = 0
    cpu_seconds: float = 0.0
    interpreter_wait_seconds: float = 0.0
    pool_threads: int = 0
    pool_busy: int = 0
    pool_waiting: int = 0
    calls_made: int = 0
    requests_accepted: int = 0
    on_the_way_bytes: int = 0
    oldest_call_seconds: float = 0.0
    totals: dict[str, int] = field(default_factory=dict)
    calls: list[ObservedCall] = field(default_factory=list)
    requests: list[ObservedRequest] = field(default_factory=list)
    owned: list[ObservedReference] = field(default_factory=list)
    held: list[ObservedReference] = field(default_factory=list)
    contexts: list[ObservedContext] = field(default_factory=list)
    links: list[ObservedLink] = field(default_factory=list)
    threads: list[ObservedThread] = field(default_factory=list)
    gatherings: list[ObservedGathering] = field(default_factory=list)
    shutdown_waits: list[str] = field(default_factory=list)
    in_shutdown: bool = False
    process_state: str = ""
    logged: list[ObservedSeries] = field(default_factory=list)
    loops: list[ObservedLoop] = field(default_factory=list)
