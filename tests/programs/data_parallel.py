"""40 steps of DistributedDataParallel on real processes, beside one process with the whole batch. Argument: the backend.

Prints "all right" on each rank at the end.
"""

import copy
import sys

import numpy as np
import telegrad as tg
from telegrad import collective as dist
from telegrad.nn.parallel import DistributedDataParallel, comm_hooks

ROWS, STEPS = 3, 40


def model_of(dtype):
    tg.manual_seed(3)
    conv = tg.nn.Conv2d(1, 4, 3)
    return tg.nn.Sequential(conv, tg.nn.Tanh(), tg.nn.Flatten(), tg.nn.Linear(64, 8), tg.nn.Linear(8, 3)).to(dtype)


def difference(ours, theirs):
    return max((a - b).abs().max().item() for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


def train(rank, size, dtype, limit, accumulate=1):
    """Both learn the same; with ``accumulate`` above 1, messages are sent every so many backwards only."""
    alone = model_of(dtype)
    ddp = DistributedDataParallel(copy.deepcopy(alone), bucket_cap_mb=2e-3)
    optimizers = [tg.optim.SGD(each.parameters(), lr=0.05, momentum=0.9) for each in (alone, ddp)]
    random = np.random.default_rng(0)
    for step in range(STEPS):
        x = tg.tensor(random.standard_normal((size * ROWS, 1, 6, 6))).to(dtype)
        y = tg.tensor(random.integers(0, 3, size * ROWS))
        mine = slice(rank * ROWS, (rank + 1) * ROWS)
        tg.nn.functional.cross_entropy(alone(x), y).backward()
        if (step + 1) % accumulate:
            with ddp.no_sync():
                tg.nn.functional.cross_entropy(ddp(x[mine]), y[mine]).backward()
            continue
        tg.nn.functional.cross_entropy(ddp(x[mine]), y[mine]).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert difference(ddp, alone) < limit, difference(ddp, alone)
    everybody = [None] * size
    dist.all_gather_object(everybody, [p.detach().numpy() for p in ddp.parameters()])
    for others in everybody:
        assert all(np.array_equal(one, other) for one, other in zip(everybody[0], others, strict=True))


def compressed(rank, size):
    """Gradients as float16, and PowerSGD: the ranks stay equal and near to the exact result."""
    for state, hook, limit in [
        (None, comm_hooks.fp16_compress_hook, 1e-2),
        (comm_hooks.PowerSGDState(None, 2, 5), comm_hooks.powerSGD_hook, 0.5),
    ]:
        alone = model_of(tg.float32)
        ddp = DistributedDataParallel(copy.deepcopy(alone))
        ddp.register_comm_hook(state, hook)
        optimizers = [tg.optim.SGD(each.parameters(), lr=0.05) for each in (alone, ddp)]
        x = tg.tensor(np.random.default_rng(1).standard_normal((size * ROWS, 1, 6, 6))).float()
        y = tg.arange(size * ROWS) % 3
        mine = slice(rank * ROWS, (rank + 1) * ROWS)
        for _ in range(20):
            tg.nn.functional.cross_entropy(alone(x), y).backward()
            tg.nn.functional.cross_entropy(ddp(x[mine]), y[mine]).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        assert difference(ddp, alone) < limit, (hook, difference(ddp, alone))


def in_a_context(rank, size):
    """The gradient of a distributed context equals the one outside, with a layer of another worker between."""
    server = f"rank{(rank + 1) % size}"
    alone = model_of(tg.float64)
    ddp = DistributedDataParallel(copy.deepcopy(alone), bucket_cap_mb=1e-3)
    x = tg.tensor(np.random.default_rng(2).standard_normal((size * ROWS, 1, 6, 6)))
    alone(x).tanh().mean().backward()
    part = x[rank * ROWS : (rank + 1) * ROWS]
    with tg.autograd_dist.context() as context:
        loss = tg.rpc.rpc_sync(server, tg.tanh, (ddp(part),)).mean()
        tg.autograd_dist.backward(context, [loss])
        inside = tg.autograd_dist.get_gradients(context)
        assert all(p.grad is None for p in ddp.parameters())
        for ours, theirs in zip(ddp.parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(inside[ours].numpy(), theirs.grad.numpy(), rtol=0, atol=1e-14)
    dist.barrier()


def sparse(rank, size, in_context):
    """Sparse gradients become their mean, outside of a context and in one; the first rank looks nothing up."""
    ddp = DistributedDataParallel(tg.nn.Embedding(8, 3, sparse=True).double())
    rows = [tg.arange(2 * each) % 8 for each in range(size)]
    weights = copy.deepcopy(ddp.module)  # those of the first rank, everywhere
    (sum((weights(each) ** 2).sum() for each in rows) / size).backward()
    if in_context:
        with tg.autograd_dist.context() as context:
            there = tg.rpc.rpc_sync(f"rank{(rank + 1) % size}", tg.sum, (ddp(rows[rank]) ** 2,))
            tg.autograd_dist.backward(context, [there])
            mean = tg.autograd_dist.get_gradients(context)[ddp.module.weight]
    else:
        (ddp(rows[rank]) ** 2).sum().backward()
        mean = ddp.module.weight.grad
    assert mean.is_sparse and mean.is_coalesced()
    np.testing.assert_allclose(mean.to_dense().numpy(), weights.weight.grad.to_dense().numpy(), rtol=0, atol=1e-14)
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group(sys.argv[1], timeout=60)
    arguments = dist.get_rank(), dist.get_world_size()
    train(*arguments, tg.float32, 1e-6)
    train(*arguments, tg.float64, 1e-12)
    train(*arguments, tg.float64, 1e-12, accumulate=4)
    compressed(*arguments)
    sparse(*arguments, in_context=False)
    if sys.argv[1] == "rpc":
        tg.rpc.init_rpc(f"rank{dist.get_rank()}")
        in_a_context(*arguments)
        sparse(*arguments, in_context=True)
        tg.rpc.shutdown()
    dist.destroy_process_group()
    print("all right")
