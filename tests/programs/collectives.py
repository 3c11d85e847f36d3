"""Every collective of tensors and objects on real processes, against NumPy.

Arguments: the backend, and the bytes of large sums and messages, which are checked as well.
Prints "all right" on each rank at the end.
"""

import itertools
import sys

import numpy as np
import telegrad as tg
from telegrad import collective as dist
from telegrad.base.errors import CollectiveError

SHAPES = [(), (0,), (5,), (3, 4), (70_001,)]
DTYPES = [
    *(tg.float64, tg.complex64, tg.int16),
    *(tg.float32, tg.float16, tg.complex128, tg.int64, tg.int32, tg.int8, tg.uint8, tg.bool),
]
EVERY_DTYPE = 3  # ranks that check all of them; others the first three, for no dtype asks how many ranks there are
BYTES = [0, 4, 1000, 1 << 16, (1 << 16) + 4, 1 << 20, (5 << 20) + 12]
PERIOD = np.arange(251, dtype=np.float32)  # large arrays are made of it


def value(rank, shape, dtype):
    numbers = np.random.default_rng(rank).integers(0, 3, shape)
    return tg.tensor(numbers).to(dtype)


def equal(tensor, expected):
    assert tensor.dtype == expected.dtype and np.array_equal(tensor.numpy(), expected.numpy()), (tensor, expected)


def tensors(rank, size):
    for shape, dtype in itertools.product(SHAPES, DTYPES if size == EVERY_DTYPE else DTYPES[:3]):
        everybody = [value(other, shape, dtype) for other in range(size)]
        largest = tg.tensor(np.max([each.numpy().real for each in everybody], axis=0)).to(dtype)
        own = everybody[rank].clone()

        if dtype.kind != "c":
            work = dist.all_reduce(own, dist.ReduceOp.MAX, async_op=True)
            assert work.wait() is own and work.is_completed()
            equal(own, largest)
        own = everybody[rank].clone()
        dist.reduce(own, 1, dist.ReduceOp.PRODUCT)
        product = np.prod([each.numpy() for each in everybody], axis=0, dtype=own.numpy().dtype)
        equal(own, tg.tensor(product) if rank == 1 else everybody[rank])

        own = everybody[rank].clone()
        dist.broadcast(own, src=size - 1)
        equal(own, everybody[-1])

        gathered = [tg.empty(shape, dtype=dtype) for _ in range(size)]
        dist.all_gather(gathered, everybody[rank])
        for got, expected in zip(gathered, everybody, strict=True):
            equal(got, expected)
        gathered = [tg.empty(shape, dtype=dtype) for _ in range(size)]
        dist.gather(everybody[rank], gathered if rank == 1 else None, dst=1)
        part = tg.empty(shape, dtype=dtype)
        dist.scatter(part, gathered if rank == 1 else None, src=1)
        equal(part, everybody[rank])

        outputs = [tg.empty(shape, dtype=dtype) for _ in range(size)]
        dist.all_to_all(outputs, [everybody[rank]] * size)
        for got, expected in zip(outputs, everybody, strict=True):
            equal(got, expected)


def parts(rank, size):
    whole = tg.arange(2 * size, dtype=tg.float64) + rank
    mine = tg.empty(2, dtype=tg.float64)
    dist.reduce_scatter_tensor(mine, whole)
    equal(mine, (tg.arange(2 * size, dtype=tg.float64) * size + sum(range(size)))[2 * rank : 2 * rank + 2])
    together = tg.empty(2 * size, dtype=tg.float64)
    dist.all_gather_into_tensor(together, mine)
    equal(together, tg.arange(2 * size, dtype=tg.float64) * size + sum(range(size)))

    # Rank r gives r + 1 rows to each.
    given = tg.full(((rank + 1) * size, 2), float(rank))
    got = tg.empty(sum(range(1, size + 1)), 2)
    dist.all_to_all_single(got, given, list(range(1, size + 1)), [rank + 1] * size)
    assert got[:, 0].tolist() == [float(source) for source in range(size) for _ in range(source + 1)]

    across = tg.zeros(4, size).t()  # not contiguous
    across += rank
    dist.all_reduce(across)
    assert (across == sum(range(size))).all().item()


def sizes(rank, size):
    """From nothing to many bytes: the algorithm depends on the size."""
    for count in BYTES:
        wholes(rank, size, count // 4)
        shares(rank, size, count // 4)
    for count in sys.argv[2:]:
        wholes(rank, size, int(count) // 4)


def wholes(rank, size, count):
    base = np.resize(PERIOD, count)
    row = tg.tensor(base + rank)
    dist.all_reduce(row)
    assert np.array_equal(row.numpy(), base * size + sum(range(size)))
    row = tg.tensor(base + rank)
    dist.broadcast(row, src=1)
    assert np.array_equal(row.numpy(), base + 1)
    dist.reduce(row, 0, dist.ReduceOp.MAX)
    assert np.array_equal(row.numpy(), base + 1)
    if rank == 0:
        dist.send(tg.tensor(base), 1)
    if rank == 1:
        dist.recv(row, 0)
        assert np.array_equal(row.numpy(), base)


def shares(rank, size, count):
    whole = tg.tensor(np.resize(PERIOD, count // size * size))
    mine = tg.empty(count // size)
    dist.reduce_scatter_tensor(mine, whole + rank)
    expected = whole.numpy().reshape(size, -1)
    assert np.array_equal(mine.numpy(), expected[rank] * size + sum(range(size)))
    together = tg.empty(count // size * size)
    dist.all_gather_into_tensor(together, mine)
    assert np.array_equal(together.numpy(), expected.reshape(-1) * size + sum(range(size)))
    dist.all_to_all_single(together, tg.tensor(np.repeat(np.float32(rank), count // size * size)))
    assert np.array_equal(together.numpy(), np.repeat(np.arange(size, dtype=np.float32), count // size))


def side_by_side(rank, size):
    """Works of overlapping groups are under way at the same time."""
    world = dist.new_group()
    pairs = [dist.new_group([first, (first + 1) % size]) for first in range(size)]
    works, rows = [], []
    for number, count in enumerate([3, 20_000, 300_000]):
        for first, group in [(-1, world), *enumerate(pairs)]:
            row = tg.full((count,), float(rank + number))
            members = range(size) if first < 0 else (first, (first + 1) % size)
            if rank in members:
                works.append(dist.all_reduce(row, group=group, async_op=True))
                rows.append((row, float(sum(members) + number * len(members))))
    for work in works:
        work.wait()
    assert all((row == total).all().item() for row, total in rows)


def objects(rank, size):
    places = [None] * size
    dist.all_gather_object(places, {"rank": rank})
    assert places == [{"rank": other} for other in range(size)]
    both = [rank, None] if rank == 0 else [None, None]
    dist.broadcast_object_list(both)
    assert both == [0, None]
    at_1 = [None] * size if rank == 1 else None
    dist.gather_object(("from", rank), at_1, dst=1)
    mine = [None]
    dist.scatter_object_list(mine, at_1, src=1)
    assert mine == [("from", rank)]


def messages(rank, size):
    if rank == 0:
        for tag in (7, 8):
            dist.send(tg.full((3,), float(tag)), 1, tag=tag)
        dist.isend(tg.arange(4), dst=1).wait()
    if rank == 1:
        for tag in (8, 7):
            got = tg.empty(3)
            assert dist.recv(got, 0, tag=tag) == 0 and got.tolist() == [float(tag)] * 3
        got = tg.empty(4, dtype=tg.int64)
        assert dist.irecv(got, 0).wait() is got and got.tolist() == [0, 1, 2, 3]


def groups(rank, size):
    ends, at_end = dist.new_group([0, size - 1]), rank in (0, size - 1)
    others = dist.new_group([1])
    row = tg.ones(2)
    dist.all_reduce(row, group=ends)
    assert row.tolist() == ([2.0, 2.0] if at_end else [1.0, 1.0])
    assert (dist.get_rank(ends), dist.get_world_size(ends)) == ((0 if rank == 0 else 1, 2) if at_end else (-1, -1))
    assert (others is dist.GroupMember.NON_GROUP_MEMBER) == (rank != 1)
    if at_end:
        assert dist.get_process_group_ranks(ends) == [0, size - 1]
        assert dist.get_global_rank(ends, 1) == size - 1 and dist.get_group_rank(ends, 0) == 0
        dist.destroy_process_group(ends)
        try:
            dist.barrier(ends)
        except CollectiveError as error:
            assert "was destroyed" in str(error)
        else:
            raise AssertionError("a destroyed group can be used")


if __name__ == "__main__":
    dist.init_process_group(sys.argv[1], timeout=60)
    arguments = dist.get_rank(), dist.get_world_size()
    assert dist.is_initialized() and dist.get_backend() == sys.argv[1]
    for check in (tensors, parts, sizes, side_by_side, objects, messages, *([groups] if arguments[1] > 2 else [])):
        check(*arguments)
        dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    print("all right")
