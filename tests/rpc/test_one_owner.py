"""Objects of an agent used under another one, or after its end: the error names their agent."""

from __future__ import annotations

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcError
from telegrad.testing.cluster import in_process_cluster


def test_what_is_left_of_an_agent_is_not_the_next_one_s():
    """The next one has the same name, the same peers and the same ids."""
    with in_process_cluster("a", "b") as (first, _), first.use():
        theirs, own = rpc.remote("b", list), tg.RRef(1)
        theirs.to_here()
        done = rpc.rpc_async("b", abs, (-1,))
        done.wait()
        opened = tg.autograd_dist.context()
        context = opened.__enter__()
    with in_process_cluster("a", "b") as (second, _), second.use():
        new = rpc.remote("b", list, ((5,),))
        assert new.to_here() == [5]
        for use in (
            theirs.to_here,
            own.local_value,
            lambda: theirs.rpc_sync().append(1),
            lambda: rpc.rpc_sync("b", len, (theirs,)),
            lambda: rpc.rpc_async("b", len, (own,)).wait(),
            lambda: rpc.remote("b", len, (own,)),
        ):
            with pytest.raises(AgentClosedError, match="worker 'a' cannot be used"):
                use()
        for use in (tg.autograd_dist.get_gradients, lambda c: tg.autograd_dist.backward(c, [leaf().sum()])):
            with pytest.raises(RpcError, match=f"no autograd context {context} on worker 'a'"):
                use(context)
        assert opened.__exit__(None, None, None) is False and done.wait() == 1
        own.release()
        theirs.release()
        assert new.to_here() == [5]
        new.release()


def leaf():
    return tg.ones(1, requires_grad=True)


def test_agents_side_by_side():
    with in_process_cluster("a", "b", "c") as (a, b, _), a.use():
        own, far = tg.RRef(1), rpc.remote("c", list)
        far.to_here()
        pending = rpc.rpc_async("c", abs, (-1,))
        with b.use():
            for reference in (own, far):
                with pytest.raises(AgentClosedError, match="belongs to worker 'a' and cannot be sent by worker 'b'"):
                    rpc.rpc_sync("c", len, (reference,))
            assert far.to_here() == [] and pending.wait() == 1, "what it does itself, it does as its own agent"
            with tg.autograd_dist.context() as context:
                assert tg.autograd_dist.get_gradients(context) == {}
            with a.use(), pytest.raises(RpcError, match="no autograd context"):
                tg.autograd_dist.get_gradients(context)
        far.release()
