"""Programs in asyncio: every form of waiting has one that does not block the loop, and what has none runs in a thread."""

import asyncio

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError
from telegrad.core.futures import Future, thread_role
from telegrad.launcher.environment import reserve_port
from telegrad.rpc.threads.ioloop import RefusesToBlock


@pytest.fixture
def refusing(monkeypatch):
    """Make a wait in the thread of the test's loop an error."""
    monkeypatch.setattr(thread_role, "blocker", RefusesToBlock(), raising=False)


@pytest.mark.usefixtures("refusing")
async def test_a_program_whose_loop_does_everything(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with reserve_port() as reserved:
        port = reserved.getsockname()[1]
    options = rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    with pytest.raises(RuntimeError, match="await the future instead"):
        Future().wait()
    await rpc.init_rpc_async("a", rank=0, world_size=1, rpc_backend_options=options)
    try:
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        with tg.autograd_dist.context() as context:
            y = await rpc.rpc_async("a", tg.mul, (x, x))
            await tg.autograd_dist.backward_async(context, [y.sum()])
            assert tg.autograd_dist.get_gradients(context)[x].tolist() == [2.0, 4.0]
        assert [item async for item in rpc.stream("a", range, (3,))] == [0, 1, 2]
        assert [item async for item in rpc.map(["a"], abs, [-1, -2])] == [1, 2]
    finally:
        await rpc.shutdown_async()
    with pytest.raises(RpcError, match="init_rpc"):
        rpc.get_worker_info()


async def test_a_reference_is_awaited(cluster):
    with cluster("a", "b") as (a, _), a.use():
        with rpc.remote("b", sorted, ([2, 1],)) as there:
            assert await there.to_here_async() == [1, 2]
        with rpc.remote("b", sorted, (3,)) as failing, pytest.raises(TypeError, match="not iterable"):
            await failing.to_here_async()
        here = rpc.RRef("mine")
        assert await here.to_here_async() == "mine"
        here.release()


async def as_worker(agent, begin, *args):
    with agent.use():
        return await begin(*args)


@pytest.mark.usefixtures("refusing")
async def test_gatherings_are_awaited(cluster):
    with cluster("a", "b") as (a, b):
        found = await asyncio.gather(*(as_worker(each, rpc._all_gather_async, each.rank) for each in (a, b)))
        assert found == [{"a": 0, "b": 1}] * 2
        assert await asyncio.gather(*(as_worker(each, rpc._barrier_async) for each in (a, b))) == [None, None]


@pytest.mark.usefixtures("refusing")
async def test_who_gives_up_a_gathering_is_not_waited_for(cluster):
    with cluster("a", "b") as (a, b):
        with pytest.raises(RpcTimeoutError):
            await as_worker(b, rpc._all_gather_async, "too early", None, 0.05)
        given_up = asyncio.ensure_future(as_worker(b, rpc._all_gather_async, "given up"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        late = (as_worker(each, rpc._all_gather_async, each.name) for each in (a, b))
        assert await asyncio.gather(*late) == [{"a": "a", "b": "b"}] * 2


@pytest.mark.usefixtures("refusing")
async def test_a_training_step_is_awaited(cluster):
    with cluster("a", "b") as (a, _), a.use():
        x = tg.tensor([2.0], requires_grad=True)
        there = await as_worker(a, rpc.rpc_async, "b", make_parameter)
        make = asyncio.to_thread(tg.DistributedOptimizer, tg.optim.SGD, [there, rpc.RRef(x)], 0.5)
        optimizer = await make
        with tg.autograd_dist.context() as context:
            loss = (await there.rpc_async().mul(x)).sum()
            await tg.autograd_dist.backward_async(context, [loss])
            await optimizer.step_async(context)
        assert x.tolist() == [0.5] and (await there.to_here_async()).tolist() == [2.0]
        with pytest.raises(RpcError, match="context"):
            optimizer.step_async(context)
        with pytest.raises(RpcError, match="needs a reference to a tensor"):
            await rpc.RRef("no tensor").backward_async()


def make_parameter():
    return rpc.RRef(tg.tensor([3.0], requires_grad=True))
