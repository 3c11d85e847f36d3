"""Requests of one backward pass to other workers, and the news that it has failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..base.errors import AutogradError, RpcError, WorkerLostError
from ..core.extend import profiles, record_call
from ..core.futures import Future
from ..proto.autograd_dist_pb2 import PassStopped
from ..rpc.extend import Agent, Peer
from .local_pass import Entry, PassKind, Unfed
from .numbers import GradientMethod, GradientTopic
from .pass_messages import pack_request

MOST_REASON_CHARACTERS = 4096  # of the reason with which a pass is stopped


class PassRequests:
    """Sender of the requests of one pass.

    Args:
        agent: the worker's agent.
        context_id: the context.
        pass_id, keep_graph, smart: see ``PassRequest``.
    """

    def __init__(
        self, agent: Agent, context_id: int, pass_id: tuple[int, int, int], keep_graph: bool, smart: bool
    ) -> None:
        self._agent = agent
        self._context_id = context_id
        self._pass_id = pass_id
        self._keep_graph = keep_graph
        self._smart = smart

    def ask(self, worker: int, entries: Sequence[Entry]) -> Future[Any]:
        """Send entries to a worker; the future holds the body of its answer.

        Raises:
            SerializationError: a gradient cannot be sent.
        """
        peer = self._agent.peers.at(worker)
        answer = self._request(peer, entries)
        for kind, *_ in entries:
            if kind != PassKind.UNUSED:
                return answer
        return answer.then(partial(_answer_or_nothing, peer.info.name))

    def _request(self, peer: Peer, entries: Sequence[Entry]) -> Future[Any]:
        body = pack_request(self._context_id, self._pass_id, self._keep_graph, self._smart, entries)
        # Without a deadline: an answer may take as long as the rest of the pass, and the pass has a deadline at its root.
        what = _Description(self._context_id, peer)
        if not profiles.get():
            return self._agent.caller.begin(peer, GradientMethod.PROPAGATE, body, 0.0, what, _label).future
        request = partial(self._agent.caller.request, peer, GradientMethod.PROPAGATE, body, 0.0, what, _label)
        return record_call(f"rpc_async#backward({self._agent.name} -> {peer.info.name})", request)

    def tell_stopped(self, worker: int, reason: str) -> None:
        """Tell a worker that the pass has failed."""
        peer = self._agent.peers.at(worker)
        if not (peer.gone or self._agent.closed):
            root, number, oldest = self._pass_id
            stopped = PassStopped(
                context=self._context_id,
                root=root,
                number=number,
                oldest=oldest,
                reason=reason[:MOST_REASON_CHARACTERS],
            )
            self._agent.control.post(peer, GradientTopic.PASS_STOPPED, stopped.SerializeToString())

    def unfed_error(self, unfed: Sequence[tuple[int, Unfed]]) -> RpcError | AutogradError:
        """Return the error for messages for which nothing came, each with its sender.

        If one of these workers is lost, that may be why: it cannot tell any more whether the messages take part.
        """
        for number in [worker for sender, each in unfed for worker in (sender, each.receiver)]:
            if (peer := self._agent.peers.at(number)).gone:
                return peer.lost_error()
        messages = ", ".join(
            f"{each.tensors} tensor{'s' * (each.tensors > 1)} sent to worker {self._name(each.receiver)} from worker "
            f"{self._name(sender)}"
            for sender, each in unfed
        )
        return AutogradError(
            f"the backward is over, and no gradient came for {messages}: a result of a remote call does not contribute to the "
            f'loss. Use mode="smart", leave such calls out of the context, or send no tensor that requires grad'
        )

    def _name(self, worker: int) -> str:
        return repr(self._agent.peers.at(worker).info.name)


class _Description:
    """Description of a request, for errors. The text is made only then."""

    def __init__(self, context_id: int, peer: Peer) -> None:
        self._context_id = context_id
        self._peer = peer

    def __str__(self) -> str:
        return f"the backward of context {self._context_id} at worker {self._peer.info.name!r}"


def _label(body: Any) -> list[tuple[str, Any]]:
    return [("the gradients", body)]


def _answer_or_nothing(worker: str, answer: Future[Any]) -> Any:
    """Return the answer of a worker that takes no part; ``None`` if the worker was lost.

    The loss of another one, which it asked, is an error: that one may take part.
    """
    error = answer.exception()
    return None if isinstance(error, WorkerLostError) and error.worker == worker else answer.value()
