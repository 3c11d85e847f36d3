"""References that are used before their creating call has arrived at the owner: every use waits for it."""

import threading

import pytest
from helpers.remote import Counter, here, local
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.wire.header import FRAME_HEAD, FrameKind
from telegrad.rref import protocol as p
from telegrad.rref.context import RRefContext
from telegrad.rref.numbers import ReferenceMethod
from telegrad.testing import in_process_cluster


class Held:
    """Holds the first creating call that arrives at an agent, until it is let go."""

    def __init__(self, agent, monkeypatch):
        self.arrived, self.frames = threading.Event(), []
        self._receive = agent.sessions.received
        monkeypatch.setattr(agent.sessions, "received", self._see)

    def _see(self, session, frame, owned):
        kind, _, method, *_ = FRAME_HEAD.unpack_from(frame)
        if kind == FrameKind.REQUEST and method == ReferenceMethod.CREATE and not self.arrived.is_set():
            self.frames.append((session, bytearray(frame), True))
            self.arrived.set()
        else:
            self._receive(session, frame, owned)

    def let_go(self):
        assert self.arrived.wait(10)
        self._receive(*self.frames.pop())


@pytest.fixture
def workers():
    with in_process_cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents


@pytest.fixture
def held(workers, monkeypatch):
    return Held(workers[2], monkeypatch)


def fetched(reference):
    return reference.to_here().get()


def local_get(reference):
    return reference.local_value().get()


def through_proxy(reference):
    return reference.rpc_sync().get()


def through_references(reference):
    return reference.remote().me().rpc_async().get().wait()


def type_is_counter(reference):
    return 7 if reference._get_type() is Counter else 0


def at_owner(function):
    return lambda reference: rpc.rpc_sync("c", function, (reference,))


USES = [
    fetched,
    through_proxy,
    through_references,
    type_is_counter,
    at_owner(fetched),
    at_owner(local_get),
    at_owner(through_proxy),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("user", ["a", "b", "c"])
def test_every_use_waits_for_the_creating_call(workers, held, until, user, use):
    owner = workers[2].part(RRefContext).ownership.owned
    reference = rpc.remote("c", Counter, (7,))
    asked = rpc.rpc_async(user, use, (reference,))
    until(lambda: len(owner))  # it has asked
    assert not asked.done()
    held.let_go()
    assert asked.wait() == 7


@pytest.mark.parametrize("use", [here, local])
def test_a_use_waits_until_its_deadline(workers, held, use):
    workers[2].rpc_timeout = 0.05
    reference = rpc.remote("c", Counter, (7,))
    with pytest.raises(RpcTimeoutError, match=r"to_here\(\) of OwnerRRef.* got no answer within 0.05 s"):
        rpc.rpc_sync("c", use, (reference,))
    held.let_go()


def test_a_use_fails_when_the_creating_call_is_known_not_to_come(workers, held, until):
    reference = rpc.remote("c", Counter, (7,))
    asked = rpc.rpc_async("c", local_get, (reference,))
    until(lambda: len(workers[2].part(RRefContext).ownership.owned))
    context = workers[0].part(RRefContext)
    sent = context.ownership.transfers.open_to(context.key(2))
    context.handle(*map(p.NotDelivered, sent))  # the creator asks, and the owner refuses it from then on
    with pytest.raises(RpcError, match=r"RRef .* was never created"):
        asked.wait()
    with pytest.raises(RpcError, match=r"was not created: the call never reached worker 'c'"):
        reference.to_here()
    held.let_go()  # and has no effect
    assert not len(workers[2].part(RRefContext).ownership.owned)


def break_the_session_to_a(workers, until):
    """Let "c" dial "a", and break that session: "a" must not take it for the one by which its own messages go."""
    with workers[2].use():
        assert rpc.rpc_sync("a", abs, (-1,)) == 1
    link = workers[0].peers.find("c").link
    (accepted,) = link.accepted
    workers[2].peers.find("a").link.dialed.close()
    until(lambda: accepted not in link.accepted)
    assert link.dialed is not None


def test_a_creating_call_is_not_taken_back_when_another_session_breaks(workers, held, until):
    reference = rpc.remote("c", Counter, (7,))
    assert held.arrived.wait(10)
    break_the_session_to_a(workers, until)
    assert workers[0].part(RRefContext).ownership.counts()["cancelling_transfers"] == 0
    held.let_go()
    assert reference.rpc_sync().get() == 7


def owned_by_c():
    return rpc.RRef(Counter(7))


def test_a_reference_in_an_answer_is_not_taken_back_when_another_session_breaks(workers, monkeypatch, until):
    """The answer of "c" waits, while the session by which "c" makes its own calls breaks."""
    a, held = workers[0], []
    receive = a.sessions.received

    def see(session, frame, owned):
        if not held and FRAME_HEAD.unpack_from(frame)[0] == FrameKind.REPLY:
            held.append((session, bytearray(frame), True))
        else:
            receive(session, frame, owned)

    monkeypatch.setattr(a.sessions, "received", see)
    answer = rpc.rpc_async("c", owned_by_c)
    until(lambda: held)
    break_the_session_to_a(workers, until)
    receive(*held[0])
    assert answer.wait(10).rpc_sync().get() == 7


@pytest.fixture
def held_accepts(workers, monkeypatch):
    """The answers of "c" about the forks that users gave, which do not leave; call it to let them go."""
    owner, held, carry_out = workers[2].part(RRefContext), [], RRefContext._carry_out

    def let_go():
        monkeypatch.setattr(RRefContext, "_carry_out", carry_out)
        accepts, held[:] = held[:], []
        carry_out(owner, accepts)

    def hold_accepts(self, instructions):
        accepts = [each for each in instructions if isinstance(each, p.Send) and isinstance(each.message, p.Accept)]
        if self is owner and accepts:
            held.extend(accepts)
            instructions = [each for each in instructions if each not in accepts]
        carry_out(self, instructions)

    monkeypatch.setattr(RRefContext, "_carry_out", hold_accepts)
    yield let_go
    let_go()


@pytest.mark.parametrize("use", USES)
def test_a_function_uses_references_that_their_owner_has_not_confirmed(workers, held_accepts, use):
    """One round trip less: the giver keeps the value until the owner knows of the fork."""
    reference = rpc.remote("c", Counter, (7,))
    assert rpc.rpc_sync("b", use, (reference,)) == 7
    assert rpc.rpc_sync("b", use_elsewhere, (use, reference)) == 7
    assert rpc.remote("b", use, (reference,)).to_here() == 7
    assert rpc.rpc_sync("b", Counter.get, (rpc.value(reference),)) == 7


def use_elsewhere(use, reference):
    return rpc.rpc_sync("a", use, (reference,))


def test_a_function_finds_the_references_among_its_arguments_confirmed(workers, held_accepts, until):
    """Wait for the owner's answer when a function asks, as PyTorch does before it starts."""
    reference = rpc.remote("c", Counter, (7,))
    asked = rpc.rpc_async("b", rpc.RRef.confirmed_by_owner, (reference,), timeout=5)
    at_once = rpc.rpc_sync("b", is_confirmed_for_a_coroutine, (reference,))
    assert at_once is False and not asked.done()
    held_accepts()
    assert asked.wait() is True


async def is_confirmed_for_a_coroutine(reference):
    return reference.confirmed_by_owner()


def test_a_function_waits_for_a_confirmation_no_longer_than_its_time_out(workers, held_accepts):
    workers[1].rpc_timeout = 0.05
    reference = rpc.remote("c", Counter, (7,))
    assert rpc.rpc_sync("b", rpc.RRef.confirmed_by_owner, (reference,)) is False
