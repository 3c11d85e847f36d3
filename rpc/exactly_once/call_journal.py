"""``rpc.call_journal``: the exactly-once calls that a worker applied, and those that it made, as a part of its checkpoints."""

from __future__ import annotations

import contextlib
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from ...base.errors import ArgumentTypeError, ArgumentValueError, RpcError, RpcTimeoutError
from ...core.extend import profiles, record_call
from ...core.futures import Future, in_thread
from ..current import current_agent
from ..functions.calling import event_name, label_parts, request_body, resolve_timeout
from ..options import check_timeout
from ..wire.function_names import reference
from ..wire.messages import Method
from .applying import Applying, stream_of_caller
from .copies import captured_request
from .saving import Saving
from .sending import StreamSender, find_callee

if TYPE_CHECKING:
    from ..agent import Agent
    from .applied import StreamKey
    from .saving import SavesSteps

DURABLE_NEWS_SECONDS = 10.0  # for the news that a checkpoint is durable; it is told again with the next answer


class CallJournal:
    """Exactly-once calls of a worker: those that it applied, and those that it made and that are kept. A part of checkpoints.

    ``rpc.call_journal()`` returns it.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._applying = agent.part(Applying)
        self._sending = agent.part(StreamSender)

    # -- the callee

    def open(self, checkpoints: SavesSteps | None = None, *, every: int | None = 1000) -> None:
        """Let exactly-once calls of other workers run here; those that came earlier have waited.

        Call it after the state of this worker was restored.

        Args:
            checkpoints: a ``Checkpointer`` of which this journal is a part. It saves in a thread beside the calls, between
                two of them; the step is the number of calls. Without it, callers can keep no more than their bounds.
            every: save after so many calls; ``None`` saves only when a caller asks, because half of its bound is reached.

        Raises:
            ArgumentTypeError: ``checkpoints`` cannot save.
            ArgumentValueError: ``every`` is not above 0.
            RpcError: it is open.
        """
        if checkpoints is not None and not callable(getattr(checkpoints, "save", None)):
            raise ArgumentTypeError(f"checkpoints is a Checkpointer, which has save(step); you gave {checkpoints!r}")
        if every is not None and not (isinstance(every, int) and every > 0):
            raise ArgumentValueError(f"every is a number of calls above 0, or None; you gave {every!r}")
        if self._applying.opened.done():
            raise RpcError("the journal of calls is open")
        if checkpoints is not None:
            saving = Saving(self._applying, partial(in_thread, checkpoints.save), every)
            self._applying.on_applied, self._applying.on_ask = saving.look, saving.ask
        self._applying.open()

    @property
    def applied(self) -> int:
        """Number of exactly-once calls that this worker has applied, those in the checkpoint that it restored included."""
        return self._applying.calls.total

    # -- the caller

    def keep_at_most(self, calls: int, size: int) -> None:
        """Bound what is kept of the calls to one callee; at the bound, ``rpc_async`` waits for a checkpoint of the callee.

        Args:
            calls: how many; 1,000 by default.
            size: bytes of their arguments, 256 MiB by default; one call is kept whatever its size.

        Raises:
            ArgumentValueError: one is not above 0.
        """
        if not (isinstance(calls, int) and isinstance(size, int) and calls > 0 and size > 0):
            raise ArgumentValueError(f"calls and size are numbers above 0; you gave {calls!r} and {size!r}")
        self._sending.bound(calls, size)

    def wait_durable(self, timeout: float = 0) -> None:
        """Wait until durable checkpoints of the callees have all exactly-once calls that this worker made. The callees save.

        Args:
            timeout: seconds; 0 is for ever.

        Raises:
            RpcTimeoutError: some have not been saved in time; the text names a callee.
        """
        seconds = check_timeout("timeout", timeout)
        ends = self._agent.timers.program.now() + seconds if seconds else math.inf
        for stream in self._sending.streams():
            while (changed := self._sending.unsaved(stream)) is not None:
                if not self._sending.wait_for_news(stream, changed, ends):
                    raise RpcTimeoutError(
                        f"worker {stream.callee!r} has not saved a checkpoint with {stream.window} within {seconds:g} s"
                    )

    # -- a part of checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Return what was applied, and the calls that are kept. Between ``pause`` and ``go_on``."""
        return {"applied": self._applying.calls.state(), "made": self._sending.state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go back to a state; the calls that it keeps are sent again.

        Raises:
            RpcError: calls were applied or made already.
        """
        if self._applying.opened.done() or self._sending.streams():
            raise RpcError("restore the checkpoint before you call rpc.call_journal().open() and before the first call")
        self._applying.calls.load(state_dict["applied"])
        self._sending.load(state_dict["made"])

    def pause(self) -> None:
        """Let no exactly-once call run here until ``go_on``; return when none does.

        Raises:
            CheckpointError: this thread runs one, or one has run for a minute.
        """
        self._applying.pause()

    def go_on(self) -> None:
        """Let calls run again."""
        self._applying.go_on()

    def saved(self, state: dict[str, Any]) -> None:
        """Note that a checkpoint with this state is durable, and tell the callers."""
        self._sending.saved(state["made"])
        for key, end in self._applying.saved(state["applied"]):
            with contextlib.suppress(RpcError):  # the caller is lost
                self._tell(key, end)

    def _tell(self, key: StreamKey, end: int) -> None:
        peer = self._agent.peers.find(key.caller)
        if peer.gone:
            return
        body: tuple[Any, ...] = (reference(told_durable, False), (key.origin, key.token, end), {})
        told = self._agent.caller.begin(
            peer, Method.CALL, body, DURABLE_NEWS_SECONDS, "the news of a checkpoint", label_parts
        )
        told.future.add_done_callback(Future.exception)


def told_durable(origin: str, token: str, end: int) -> None:
    """Take the news that a durable checkpoint of the worker that calls this has the calls below ``end`` of a stream.

    Args:
        origin, token: the stream, as in ``StreamKey``.
        end: one past the number of the last call.
    """
    sending, (key, _) = current_agent().part(StreamSender), stream_of_caller(origin, token)
    if (stream := sending.find(key.caller, origin, token)) is not None:
        sending.told_durable(stream, end)


def call_once(agent: Agent, to: Any, function: Any, args: Any, kwargs: Any, timeout: float, api: str) -> Future[Any]:
    """Ask a worker to run a function that ``exactly_once`` marks; the future holds the result.

    Args:
        agent, to, function, args, kwargs, timeout, api: as for ``call_function``.

    Raises:
        ArgumentTypeError: an argument is of a type that a checkpoint cannot keep.
        ArgumentValueError: the callee cannot find the function by a name.
    """
    peer = find_callee(agent, to)
    (named, given, options), name = request_body(peer or agent.peers.mine(), function, args, kwargs, once=True)
    if not isinstance(named, str):
        raise ArgumentValueError(
            f"{name} is called exactly once, also by a worker that is started anew, so it must be found by its name: define it "
            "in a module, outside of functions"
        )
    request, size = captured_request(named, given, options)
    callee = to if peer is None else peer.info.name
    begin = partial(agent.part(StreamSender).call, callee, request, size, resolve_timeout(agent, timeout))
    if peer is None or not profiles.get():
        return begin()
    return record_call(event_name(api, function, agent, peer), begin, blocking=api == "rpc_sync")


def call_journal() -> CallJournal:
    """Return the journal of the exactly-once calls of this worker: those that it applied, and those that it made.

    It is a part of the worker's checkpoints. A callee restores them, and opens its journal then; a caller restores them before
    its first call.

    Raises:
        AgentClosedError: there is no agent.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer):
        ...     with server.use():
        ...         rpc.call_journal().open()
        ...     with trainer.use():
        ...         print(rpc.call_journal().applied)
        0
    """
    return current_agent().part(CallJournal)
