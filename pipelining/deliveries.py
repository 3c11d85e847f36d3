"""Deliveries: activations and gradients on their way to a stage, which the request names by its number.

Stages send them for each micro-batch, so they are cheap. If all values are tensors, the request has no pickle
(``rpc/calls/codec.py``), and the thread that reads it puts it into the stage's inbox. The stage's thread is that reader
while it waits (``core.futures.Driver``), so no other thread wakes.
"""

from __future__ import annotations

import itertools
import threading
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..base.errors import RpcError
from ..core.extend import profiles, record_call
from ..core.futures import Future
from ..rpc.extend import Agent, ServerCall
from .inbox import Inbox
from .numbers import PipelineMethod
from .schedules import Action

Values = tuple[Any, ...]

_making = threading.Lock()  # of the part of an agent, of which there is one


class Address(NamedTuple):
    """Place of a stage."""

    worker: int  # number
    stage: int  # number among the stages of that worker


class Deliveries:
    """The stages of one agent, and what others send to them. It is made with the agent's first stage.

    Args:
        agent: the agent that sends and receives.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._numbers = itertools.count(1)
        self._inboxes: WeakValueDictionary[int, Inbox] = WeakValueDictionary()
        agent.server.serve(PipelineMethod.DELIVER, self._arrived, quick=True)

    @classmethod
    def of(cls, agent: Agent) -> Deliveries:
        """Return an agent's."""
        with _making:
            try:
                return agent.part(cls)
            except KeyError:
                made = cls(agent)
                agent.add_part(made)
                return made

    def add(self, inbox: Inbox) -> Address:
        """Return a new address, of which the deliveries go to ``inbox`` for as long as others refer to it."""
        number = next(self._numbers)
        self._inboxes[number] = inbox
        return Address(self._agent.number, number)

    def send(self, to: Address, step: int, action: Action, values: Values, seconds: float) -> Future[Any]:
        """Send values to a stage; the future completes when they are in its inbox.

        Args:
            to: the stage.
            step: number of the step.
            action: the piece of work that needs them.
            values: captured before this returns.
            seconds: until the future fails.
        """
        peer = self._agent.peers.at(to.worker)
        body: Any = (f"{to.stage} {step} {action.kind} {action.microbatch}", values, {})
        what = f"the delivery of micro-batch {action.microbatch} of the {action.kind} to worker {peer.info.name!r}"
        request = partial(self._agent.caller.request, peer, PipelineMethod.DELIVER, body, seconds, what, _labels)
        if not profiles.get():
            return request()
        return record_call(f"rpc_async#deliver({self._agent.name} -> {peer.info.name})", request)

    def _arrived(self, call: ServerCall) -> None:
        if self._agent.codec.is_plain(call):
            self._put(call)
        else:  # to open it may run user code
            run = self._agent.threads.new_context().run
            self._agent.threads.functions.submit(partial(run, self._try_to_put, call))

    def _try_to_put(self, call: ServerCall) -> None:
        try:
            self._put(call)
        except BaseException as error:
            call.fail(error)

    def _put(self, call: ServerCall) -> None:
        label, values, _ = call.open()
        stage, step, kind, microbatch = label.split()
        inbox = self._inboxes.get(int(stage))
        if inbox is None:
            raise RpcError(
                f"worker {self._agent.name!r} has no stage {stage} of a pipeline any more; keep the Pipeline"
            )
        inbox.put(int(step), Action(kind, int(microbatch)), values, call.session.reading)
        call.reply(None)


def _labels(body: tuple[str, Values, Any]) -> list[tuple[str, Any]]:
    return [(f"result {index} of a stage", value) for index, value in enumerate(body[1])]
