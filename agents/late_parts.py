"""Parts of an agent that few programs use: each is made, and its modules are imported, when it is first needed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd_dist.extend import GRADIENT_EXTRA, GradientMethod, GradientTopic, current_context
from ..base.late_imports import import_place
from ..collective.extend import GroupMethod
from ..core.extend import profiles
from ..profiler_dist.extend import PROFILE_EXTRA
from ..rpc.extend import LateInterceptor, Method, Topic, watch_waits

if TYPE_CHECKING:
    from ..rpc.extend import Agent, Interceptor, ObservedContext
    from ..rref.extend import RRefContext


class LateRow(NamedTuple):
    """Parts that are made together.

    Attributes:
        place: of the interface that has their classes.
        names: of the classes, in the order in which they are made.
        methods, topics: by which requests and control messages they are needed.
    """

    place: str
    names: tuple[str, ...]
    methods: tuple[int, ...] = ()
    topics: tuple[int, ...] = ()


LATE_PARTS = (
    LateRow("..rpc.extend", ("Producers",), (Method.STREAM, Method.PULL)),
    LateRow("..rpc.extend", ("MeshCalls",), (Method.MESH,), (Topic.MESH,)),
    LateRow("..rpc.extend", ("Applying", "StreamSender", "CallJournal")),
    LateRow("..rpc.extend", ("Debugger", "Sampler", "IdeSessions"), (Method.DEBUG,), (Topic.HELD,)),
    LateRow(
        "..autograd_dist.extend",
        ("CapturedParts",),
        (
            GradientMethod.FORWARD,
            GradientMethod.BACKWARD,
            GradientMethod.FAILURE,
            GradientMethod.DEFINE,
            GradientMethod.PLAIN,
        ),
        (GradientTopic.FORGET,),
    ),
    LateRow("..collective.extend", ("Mailbox", "Failures"), (GroupMethod.PASS, GroupMethod.FAIL, GroupMethod.ASK)),
    LateRow("..collective.extend", ("ElasticTrainings",), (GroupMethod.REPORT, GroupMethod.STATE)),
)


def add_late_parts(agent: Agent) -> None:
    """Add the parts of ``LATE_PARTS``."""
    for row in LATE_PARTS:
        agent.late.add(partial(_make, agent, row), row.names, row.methods, row.topics)
    agent.debug_sections["generators"] = int  # there is none


def _make(agent: Agent, row: LateRow) -> None:
    interface = import_place(row.place, __package__)
    for name in row.names:
        agent.add_part(getattr(interface, name)(agent))


def add_gradients(agent: Agent) -> Interceptor:
    """Add the parts of distributed autograd; return what stands for their interceptor until they are made."""

    def make() -> None:
        from ..autograd_dist.extend import serve_gradients

        serve_gradients(agent)

    names = ("Contexts", "StepQueue")
    methods = (GradientMethod.PROPAGATE, GradientMethod.STEP)
    agent.late.add(make, names, methods, (GradientTopic.CONTEXT, GradientTopic.PASS_STOPPED))
    agent.debug_sections["contexts"] = int  # there is none
    agent.debug_counts.append(lambda: {"num_autograd_contexts": 0, "num_current_backward_passes": 0})
    return LateInterceptor(agent.codec, GRADIENT_EXTRA, current_context, partial(agent.late.ready, "Contexts"))


def add_profiler(agent: Agent) -> Interceptor:
    """Return what stands for the interceptor of profiles until a call is recorded."""

    def make() -> None:
        from ..profiler_dist.extend import ProfilerInterceptor

        profiler = ProfilerInterceptor(agent)
        agent.add_part(profiler)
        agent.codec.replace(profiler)

    agent.late.add(make, ("ProfilerInterceptor",))
    return LateInterceptor(agent.codec, PROFILE_EXTRA, profiles, partial(agent.late.ready, "ProfilerInterceptor"), True)


def backward_from(reference: Any, context_id: int, retain_graph: bool) -> None:
    """Run backward from a reference's value, as ``autograd_dist`` does.

    Args:
        reference, context_id, retain_graph: see there.
    """
    from ..autograd_dist.extend import backward_from

    backward_from(reference, context_id, retain_graph)


def add_observer(agent: Agent, references: RRefContext | None = None) -> None:
    """Add the part that answers what this worker does.

    Args:
        agent: the worker's agent.
        references: the worker's; None for an agent that has neither references nor contexts.
    """

    def make() -> None:
        from ..collective.extend import collective_waits
        from ..rpc.extend import Observer, UpperLayers, observe_worker
        from ..rref.extend import observe_references

        layers = UpperLayers(collective_waits)
        if references is not None:
            contexts = partial(_observe_contexts, agent)
            layers = UpperLayers(collective_waits, partial(observe_references, references), contexts)
        agent.add_part(Observer(agent, partial(observe_worker, agent, layers)))

    agent.late.add(make, ("Observer",), (Method.OBSERVE,))
    watch_waits(agent)


def _observe_contexts(agent: Agent) -> list[ObservedContext]:
    if not agent.late.made("Contexts"):
        return []
    from ..autograd_dist.extend import Contexts

    return agent.part(Contexts).observe()
