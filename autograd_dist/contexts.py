"""Contexts: each worker's part of a distributed forward and backward, and the driver of the contexts' lifetimes."""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from functools import partial
from typing import Protocol

from ..base.errors import AutogradError, ContextTypeError, PassStoppedError, RpcError
from ..proto.autograd_dist_pb2 import ContextMessages, PassStopped
from ..rpc.extend import Agent, ObservedContext, Outgoing, Peer, ServerCall
from .backward_pass import BackwardPass
from .graph import ContextGraph, SendNode
from .lifetimes import (
    Closed,
    ContextArrived,
    ContextLeft,
    Event,
    Lifetime,
    Lifetimes,
    Orphan,
    Received,
    Release,
    Send,
    WorkerLost,
    make_creator,
)
from .local_pass import PassKind
from .news import RELEASE, News
from .numbers import GradientMethod, GradientTopic
from .observed_passes import observe_passes
from .pass_messages import open_request, pack_answer
from .passes import Passes, PassId


class RecordedStep(Protocol):
    """Recording of a step in a context (``captured/recording.py``)."""

    def sending(self, message: Outgoing) -> int:
        """Note that a request leaves; return the number of the part that it calls, 0 if it calls none.

        Args:
            message: the request.
        """
        ...

    def sent(self, node: SendNode) -> None:
        """Note the node of the tensors of a message.

        Args:
            node: the node.
        """
        ...


class Context(Lifetime):
    """Context on one worker: its lifetime, its graph, and its backward passes.

    Args:
        context_id, parent: see ``Lifetime``.
        worker: number of the worker.
    """

    def __init__(self, context_id: int, parent: int | None, worker: int) -> None:
        super().__init__(context_id, parent)
        self.graph = ContextGraph(context_id)
        self.passes = Passes(worker)
        self.recorded: dict[int, RecordedStep] = {}  # recordings of steps in it, by threads


class Contexts:
    """Contexts of one agent. It gives events to ``Lifetimes`` under a lock, and carries the instructions out."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.message_ids = itertools.count(1)
        self.lifetimes = Lifetimes(
            make_creator(agent.number, agent.record.incarnation), partial(Context, worker=agent.number)
        )
        self._live = self.lifetimes.live
        self._lock = threading.Lock()
        self.news = News(agent)
        agent.control.on(GradientTopic.CONTEXT, self._on_message)
        agent.control.on(GradientTopic.PASS_STOPPED, self._on_stopped)
        agent.losses.on_lost.append(self._on_lost)
        agent.on_close.append(lambda: self._handle(Closed()))
        agent.debug_sections["contexts"] = lambda: len(self.lifetimes)
        agent.debug_counts.append(self._pytorch_counts)

    def _pytorch_counts(self) -> dict[str, int]:
        with self._lock:
            contexts = list(self.lifetimes)
        return {
            "num_autograd_contexts": len(contexts),
            "num_current_backward_passes": sum(context.passes.going_on() for context in contexts),
        }

    def create(self) -> Context:
        """Return a new context of this worker."""
        self.agent.state.check_open()
        with self._lock:
            return self.lifetimes.create()

    def find(self, context_id: int) -> Context:
        """Return a live context.

        Raises:
            RpcError: there is no such context here.
            ContextTypeError: ``context_id`` is no id.
        """
        context = self._live.get(context_id) if isinstance(context_id, int) else None
        if context is None:
            kind = RpcError if isinstance(context_id, int) else ContextTypeError
            raise kind(
                f"there is no autograd context {context_id!r} on worker {self.agent.name!r} (it is over, or was never here); "
                f"work inside `with autograd_dist.context() as context_id:`"
            )
        return context

    def check_not_over(self, context_id: int) -> None:
        """Raise if an id is that of a context of this worker which is over. Other workers' contexts may be unknown here.

        Raises:
            RpcError: the context is over.
            ContextTypeError: ``context_id`` is no id.
        """
        if not isinstance(context_id, int) or context_id >> 32 == self.lifetimes.me:
            self.find(context_id)

    def join(self, context_id: int, sender: int) -> Context | None:
        """Return the context of a message that arrived; make it if it is new here. ``None`` if it has ended."""
        context = self._live.get(context_id)
        if context is not None:
            return context
        self._handle(ContextArrived(context_id, sender))
        return self._live.get(context_id)

    def reach(self, context: Context, to: int) -> bool:
        """Note that a message of the context goes to ``to``; False if the context has ended."""
        if (to in context.reached or to == context.parent) and self._live.get(context.id) is context:
            return True  # nothing is to be noted
        with self._lock:
            return self.lifetimes.reach(context, to)

    def partners(self, context: Context) -> list[int]:
        """Return the numbers of this worker's parent in the context, and of the workers to which it sent messages of it."""
        parent = set() if context.parent is None else {context.parent}
        with self._lock:
            return sorted(context.reached | parent)

    def observe(self) -> list[ObservedContext]:
        """Return the live contexts, for an observation of this worker."""
        name = self.agent.peers.name
        return [
            ObservedContext(
                each.id,
                name(each.id >> 48),
                [name(number) for number in self.partners(each)],
                observe_passes(each.passes.parts(), name),
            )
            for each in self.lifetimes
        ]

    def release(self, context_id: int) -> None:
        """End a context of this worker, here and on every worker that it reached."""
        self._handle(ContextLeft(context_id))

    def get(self, context_id: int) -> Context | None:
        """Return the live context of that id; ``None`` if there is none here."""
        return self._live.get(context_id)

    def _on_message(self, peer: Peer, payload: bytes) -> None:
        for given in ContextMessages.FromString(payload).messages:
            released = given.kind == RELEASE
            message = Release(given.context, given.since) if released else Orphan(given.context)
            self._handle(Received(peer.number, message))

    def _on_stopped(self, peer: Peer, payload: bytes) -> None:
        stopped = PassStopped.FromString(payload)
        if (context := self.get(stopped.context)) is None:
            return
        with suppress(AutogradError):  # raised if the pass is over
            pass_id = PassId(stopped.root, stopped.number, stopped.oldest)
            # This message may overtake the first request of the pass, so the part is made here if it does not exist.
            part = context.passes.join(pass_id, partial(BackwardPass, self.agent, context.graph))
            part.stop(PassStoppedError(f"the backward was stopped by worker {peer.info.name!r}: {stopped.reason}"))

    def _on_lost(self, peer: Peer) -> None:
        self._handle(WorkerLost(peer.number))

    def heard(self, sender: int, release: Release) -> None:
        """Take news that rode on a request (``News.riding``)."""
        self._handle(Received(sender, release))

    def _handle(self, event: Event) -> None:
        with self._lock:
            instructions = self.lifetimes.handle(event)
        for each in instructions:
            if type(each) is Send:
                self.news.add(each.to, each.message)


def contexts_of(agent: Agent) -> Contexts:
    """Return the contexts of an agent."""
    return agent.part(Contexts)


def serve_passes(contexts: Contexts) -> None:
    """Let the agent of ``contexts`` take part in passes."""
    contexts.agent.server.serve(GradientMethod.PROPAGATE, partial(_serve_propagate, contexts))


def _serve_propagate(contexts: Contexts, call: ServerCall) -> None:
    """Take entries of a pass."""
    context_id, pass_id, keep_graph, smart, entries = open_request(call.open())
    call.what = "a backward"
    context = contexts.get(context_id)
    if context is None and all(kind == PassKind.QUERY for kind, *_ in entries):  # no message of it has arrived yet
        call.reply(pack_answer([(PassKind.UNUSED, message_id, ()) for _, message_id, _ in entries], {}))
        return
    context = context or contexts.find(context_id)  # raises an error if there is no context
    make = partial(BackwardPass, contexts.agent, context.graph, keep_graph=keep_graph, smart=smart)
    context.passes.join(PassId(*pass_id), make).received(call, entries)
