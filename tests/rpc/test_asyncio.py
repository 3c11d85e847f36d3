"""Programs in asyncio: every form of waiting has one that does not block the loop, and what has none runs in a thread."""

import asyncio

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.launcher.environment import reserve_port


async def test_a_program_whose_loop_does_everything(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with reserve_port() as reserved:
        port = reserved.getsockname()[1]
    options = rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    await asyncio.to_thread(rpc.init_rpc, "a", rank=0, world_size=1, rpc_backend_options=options)
    try:
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        with tg.autograd_dist.context() as context:
            y = await rpc.rpc_async("a", tg.mul, (x, x))
            await asyncio.to_thread(tg.autograd_dist.backward, context, [y.sum()])
            assert tg.autograd_dist.get_gradients(context)[x].tolist() == [2.0, 4.0]
        assert [item async for item in rpc.stream("a", range, (3,))] == [0, 1, 2]
        assert [item async for item in rpc.map(["a"], abs, [-1, -2])] == [1, 2]
    finally:
        await asyncio.to_thread(rpc.shutdown)


async def test_a_reference_is_awaited(cluster):
    with cluster("a", "b") as (a, _), a.use():
        with rpc.remote("b", sorted, ([2, 1],)) as there:
            assert await there.to_here_async() == [1, 2]
        with rpc.remote("b", sorted, (3,)) as failing, pytest.raises(TypeError, match="not iterable"):
            await failing.to_here_async()
        here = rpc.RRef("mine")
        assert await here.to_here_async() == "mine"
        here.release()
