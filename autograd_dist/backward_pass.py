"""Driver of one backward pass on one worker: requests and answers of other workers, and the end.

Entries arrive in requests and answers. The thread that brings them runs the nodes that become ready. Then the entries for
other workers leave, in one message to each. Answers list the messages for which a worker got nothing. So the root can
ask their receivers, and name these messages in an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from ..base.errors import PassStoppedError, RpcTimeoutError
from ..core.extend import Node
from ..core.futures import Future, complete_once, wait_for_any
from ..rpc.extend import Agent, ServerCall
from .graph import ContextGraph, ReceiveNode, current_gatherer
from .held_gradients import HeldGradients
from .local_pass import Entry, Feeds, LocalPass, PassKind, Unfed
from .pass_messages import Reports, open_answer, pack_answer
from .pass_requests import PassRequests
from .termination import Answer, Instruction, Over, Termination
from .unfed_messages import UnfedMessages, senders

# Gradients of so many bytes are sent while other nodes are ready to run here, so that both workers run at the same time.
# Smaller gradients wait for others to the same worker: a message of their own takes longer than the nodes that would run.
LARGE = 65536
# A thread that has worked on a request waits so long for an answer. Its place in the pool is free during that time.
HOLD_SECONDS = 50e-3


class BackwardPass:
    """A backward pass over the part of a context's graph on one worker.

    Args:
        agent: the worker's agent.
        graph: the graph to differentiate.
        pass_id: id of the pass, the same on all workers; it begins with the number of the root.
        keep_graph: keep the saved values of the nodes, for another pass.
        smart: leave out messages that take no part; otherwise they are an error.
        roots: nodes that ``begin`` will feed, at the worker that starts the pass.
    """

    def __init__(
        self,
        agent: Agent,
        graph: ContextGraph,
        pass_id: tuple[int, int, int],
        keep_graph: bool = False,
        smart: bool = True,
        roots: Collection[Node] = (),
    ) -> None:
        self._agent = agent
        self._smart = smart
        self._requests = PassRequests(agent, graph.context_id, pass_id, keep_graph, smart)
        self.finished: Future[None] = Future()  # at the root
        self.part = LocalPass(agent.number, graph, keep_graph, smart, roots)
        self.accumulate = graph.accumulate
        self.keeps_graph = keep_graph
        self._termination: Termination[ServerCall] = Termination(is_root=pass_id[0] == agent.number)
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._calls: set[ServerCall] = set()  # requests that threads work on
        self._unfed = UnfedMessages(agent.number)
        self._held = HeldGradients()
        self._running = 0  # threads that run nodes

    # -- for observers

    @property
    def state(self) -> str:
        """State of this part: "works", "waits", "idle", "over" or "failed" (see ``ObservedPass``)."""
        with self._lock:
            if self._failure is not None:
                return "failed"
            if self.finished.done():
                return "over"
            if self._termination.busy:
                return "works"
            return "waits" if self._termination.engaged else "idle"

    @property
    def failure(self) -> str:
        """Text of the error with which it failed; empty if it has not."""
        return f"{type(self._failure).__name__}: {self._failure}" if self._failure is not None else ""

    # -- the root

    def begin(self, feeds: Feeds, waits: bool = False) -> list[Future[Any]]:
        """Feed the roots and run; return the futures of the answers (see ``_work``)."""
        with self._lock:
            self._termination.started()
        return self._work(partial(self.part.receive, (), feeds), waits=waits)

    def run(self, feeds: Feeds, seconds: float, what: object) -> None:
        """Feed the roots, and block until the pass is over. This thread waits for answers and works on them itself.

        Args:
            feeds: nodes and their gradients; the nodes are the ``roots`` of the constructor.
            seconds: the time-out; 0 for no limit.
            what: its text names the pass in the error of a time-out.

        Raises:
            RpcTimeoutError: the pass took longer.
            Exception: the error with which the pass failed.
        """
        deadline = time.monotonic() + seconds if seconds else None
        try:
            answers = self.begin(feeds, waits=True)
            while answers and not self.finished.done():
                answers = self._take_first(answers, deadline)
            if not self.finished.done():
                _wait(self.finished, deadline)
        except TimeoutError:
            options = "GrpcRpcBackendOptions(rpc_timeout=)"
            late = RpcTimeoutError(f"{what} got no answer within {seconds:g} s; give it longer with {options}")
            self.stop(late)
            complete_once(self.finished, error=late)  # in case it has failed elsewhere, and the error did not arrive
        except BaseException as error:
            self.stop(error)
            raise
        self.finished.value()

    def _take_first(self, answers: list[Future[Any]], deadline: float | None) -> list[Future[Any]]:
        """Wait for one of the answers, work on all that have arrived, and return those still to come."""
        if len(answers) == 1:
            _wait(answers[0], deadline)
            return self._answered(answers[0], waits=True)
        # The pass may fail before any answer comes.
        wait_for_any([*answers, self.finished], None if deadline is None else max(deadline - time.monotonic(), 0.0))
        left = [answer for answer in answers if not answer.done()]
        for answer in answers:
            if answer not in left:
                left += self._answered(answer, waits=True)
        return left

    # -- requests and answers

    def received(self, call: ServerCall, entries: Sequence[Entry]) -> None:
        """Take a request with entries. Its answer acknowledges it."""
        with self._lock:
            failure = self._failure
            if failure is None:
                self._termination.received(call)
                self._calls.add(call)
        if failure is not None:
            call.fail(failure)
            return
        self._work_on(self._work(partial(self.part.receive, entries), call, waits=True))

    def _work_on(self, answers: list[Future[Any]]) -> None:
        """Wait for the answer if there is only one, and work on it here if it comes soon.

        A later answer, or one of several, is worked on in the thread in which it arrives. So in a chain of many workers no
        other thread is woken, and no thread waits for long.
        """
        while len(answers) == 1:
            (answer,) = answers
            if (driver := answer.driver) is not None:
                driver.drive(answer, time.monotonic() + HOLD_SECONDS)
            if not answer.done():
                break
            answers = self._answered(answer, waits=True)
        for answer in answers:
            answer.add_done_callback(self._answered)

    def _answered(self, answer: Future[Any], waits: bool = False) -> list[Future[Any]]:
        with self._lock:
            self._termination.answered()
        return self._work(partial(self._handle_answer, answer), waits=waits)

    def _handle_answer(self, answer: Future[Any]) -> None:
        if (error := answer.exception()) is not None:
            # Its cause shows where it was raised, on another worker. The frames of this thread's wait are dropped.
            self._failed_elsewhere(error.with_traceback(None))
        else:
            entries, reports = open_answer(answer.value())
            if reports:
                with self._lock:
                    self._unfed.merge(reports)
            if entries:
                self.part.receive(entries)

    def _work(
        self, action: Callable[[], None], call: ServerCall | None = None, waits: bool = False
    ) -> list[Future[Any]]:
        """Run ``action``, and send the resulting entries.

        Args:
            action: works on entries.
            call: the request that brought them.
            waits: this thread can wait for answers and work on them. Otherwise the threads in which they arrive work on them.

        Returns:
            The futures of the answers for which this thread must wait.
        """
        token = current_gatherer.set(self)
        try:
            self._run(action)
        except BaseException as error:
            self.stop(error)
        finally:
            current_gatherer.reset(token)
        with self._lock:
            failure = self._failure
            if call is not None:
                self._calls.remove(call)
            if failure is None:
                # Locked: a thread that stops the pass from now on also tells the workers that are about to be asked.
                instructions = self._termination.rested(call, self.part.outgoing())
            else:
                self._termination.busy -= 1
                call = None if call is self._termination.parent else call
        if failure is None:
            return self._carry_out(instructions, waits)
        if call is not None:
            call.fail(failure)
        self._end_failed()
        return []

    def hold(self, leaf: Any, gradient: Any) -> None:
        """Add to the gradient of a leaf of PyTorch, which is accumulated when no more is to come to this worker."""
        self._held.add(leaf, gradient)

    def _run(self, action: Callable[[], None]) -> None:
        """Run ``action``. If it is the last to bring gradients to this worker, accumulate those that are held.

        What is hooked to the accumulation may wait for other workers, which get their entries before.
        """
        with self._lock:
            self._running += 1
        try:
            action()
        finally:
            with self._lock:
                self._running -= 1
                ends = not self._running and self._held
        if ends and not self.part.unfed():
            self._send_now()
            self._held.accumulate(self.accumulate)

    def gather(self, node: ReceiveNode, gradients: Sequence[Any] | None) -> None:
        """Take the gradients of received tensors, for their sender. The graph task calls this."""
        if self.part.gather(node, gradients) >= LARGE and self.part.task.has_ready:
            self._send_now()

    def _send_now(self) -> None:
        """Send the entries for other workers now, while this thread goes on."""
        with self._lock:
            instructions = [] if self._failure else self._termination.sent(self.part.outgoing())
        self._carry_out(instructions, waits=False)

    def _carry_out(self, instructions: Sequence[Instruction[ServerCall]], waits: bool) -> list[Future[Any]]:
        futures: list[Future[Any]] = []
        for instruction in instructions:
            if isinstance(instruction, Over):
                return self._over(waits)
            try:
                if isinstance(instruction, Answer):
                    self._reply(instruction)
                else:
                    futures.append(self._requests.ask(instruction.to, instruction.work))
            except Exception as error:  # a gradient has a type that cannot be sent, or the agent was closed
                self.stop(error)
        if waits:
            return futures
        for future in futures:
            future.add_done_callback(self._answered)
        return []

    def _reply(self, answer: Answer[ServerCall]) -> None:
        try:
            if answer.last and self._held:
                self._held.accumulate(self.accumulate)
            reports = self._report() if answer.last else {}
            answer.request.reply(pack_answer(answer.work, reports))
        except Exception as error:
            answer.request.fail(error)
            raise

    def _report(self) -> Reports:
        with self._lock:
            return self._unfed.settle(self.part.unfed())

    # -- the end

    def _over(self, waits: bool) -> list[Future[Any]]:
        error: Exception | None = None
        if reports := self._report():
            unfed = senders(reports)
            if self._smart and (fresh := self._unfed.fresh(unfed)):
                return self._query([unfed[message_id] for message_id in fresh], waits)
            error = self._requests.unfed_error([*unfed.values()]) if unfed else None
        if error is None and self._held:
            try:
                self._held.accumulate(self.accumulate)
            except Exception as problem:
                error = problem
        complete_once(self.finished, error=error)
        return []

    def _query(self, unfed: Sequence[tuple[int, Unfed]], waits: bool) -> list[Future[Any]]:
        """Ask the receivers of messages for which nothing came: the pass may not have reached these workers."""

        def tell() -> None:
            for sender, each in unfed:
                if self._agent.peers.at(each.receiver).gone and each.receiver not in self._unfed:
                    self.part.tell(sender, (PassKind.UNUSED, each.message_id, ()))
                else:
                    self.part.tell(each.receiver, (PassKind.QUERY, each.message_id, ()))
            self.part.receive(())

        with self._lock:
            self._termination.started()
        return self._work(tell, waits=waits)

    def stop(self, error: BaseException) -> None:
        """Fail the pass, unless it is over or has failed: here, and at the workers that this one asked, which tell others."""
        with self._lock:
            if self._failure is not None or self.finished.done():
                return
            self._failure = error
            asked = sorted(self._termination.asked)
        reason = f"{type(error).__name__}: {error}"
        self.part.stop(reason)
        self._end_failed()
        for worker in asked:
            self._requests.tell_stopped(worker, reason)

    def _failed_elsewhere(self, error: BaseException) -> None:
        with self._lock:
            if isinstance(self._failure, PassStoppedError):
                self._failure = error  # the news came before the error itself
        self.stop(error)

    def _end_failed(self) -> None:
        """Answer the request that engaged this worker with the error, or end the pass at its root.

        A request on which a thread works is answered by that thread. The news of a failure on another worker may come before
        the error, which is in an answer. So after such news, this waits until no answer is still to come.
        """
        with self._lock:
            termination, failure = self._termination, self._failure
            parent = termination.parent
            waits = isinstance(failure, PassStoppedError) and (termination.awaited or termination.busy)
            if waits or parent in self._calls:
                return
            termination.parent = None
        if termination.is_root:
            complete_once(self.finished, error=failure)
        elif parent is not None and failure is not None:
            parent.fail(failure)


def _wait(future: Future[Any], deadline: float | None) -> None:
    """Block until a future has completed, with a value or an error, which is not raised.

    Raises:
        TimeoutError: the deadline has passed.
    """
    try:
        future.wait(None if deadline is None else max(deadline - time.monotonic(), 0.0))
    except BaseException as error:
        if not future.done() or error is not future.exception():
            raise
