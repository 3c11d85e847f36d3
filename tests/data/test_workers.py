"""DataLoader with worker processes: what comes is what comes without, from where, and with which seeds."""

import gc
import multiprocessing
import os
import pickle

import loading
import numpy as np
import pytest
import telegrad as tg
from helpers.programs import stop_fork_server
from telegrad.data import DataLoader, TensorDataset
from telegrad.data.pool import Pool

# Tests fork, whatever threads other tests have left in this process.
pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def programs():
    """The datasets that workers import by name; in the end the batches' memory is gone."""
    yield loading
    gc.collect()
    with open("/proc/self/maps") as maps:
        assert "memfd:telegrad" not in maps.read(), "a batch's memory is left"


@pytest.fixture(params=["spawn", "fork"])
def context(request):
    return request.param


def seeded(seed=1):
    return tg.Generator().manual_seed(seed)


def plain(value):
    """A batch as something that can be compared."""
    if isinstance(value, tg.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return type(value).__name__, [plain(item) for item in value]
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("width", [3, 30_000], ids=["inline", "segments"])
@pytest.mark.parametrize(
    "options, context",  # how a worker starts does not decide how it batches
    [
        ({"batch_size": 4}, "fork"),
        ({"batch_size": None}, "fork"),
        ({"batch_size": 3, "drop_last": True}, "fork"),
        ({"batch_size": 3, "drop_last": True}, "spawn"),
    ],
    ids=str,
)
def test_the_batches_are_those_of_one_process(context, programs, options, width):
    dataset = programs.Squares(10, width)
    here = DataLoader(dataset, shuffle=True, generator=seeded(), **options)
    there = DataLoader(
        dataset, shuffle=True, generator=seeded(), num_workers=2, multiprocessing_context=context, **options
    )
    assert len(here) == len(there)
    for _ in range(2):  # the generator has gone on equally far
        assert [plain(batch) for batch in here] == [plain(batch) for batch in there]


def test_forkserver(programs):
    try:
        loader = DataLoader(
            programs.Squares(5), num_workers=2, multiprocessing_context=multiprocessing.get_context("forkserver")
        )
        assert [batch["number"].item() for batch in loader] == list(range(5))
    finally:
        stop_fork_server()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_work_is_dealt_out_in_turn(programs, workers):
    loader = DataLoader(programs.Where(8), 2, num_workers=workers, multiprocessing_context="fork")
    for number, (_, processes, ids, counts) in enumerate(loader):
        assert set(ids.tolist()) == {number % workers} and set(counts.tolist()) == {workers}
        assert os.getpid() not in processes.tolist()
    assert tg.data.get_worker_info() is None


def test_batches_are_the_users_own(context):
    dataset = TensorDataset(tg.arange(40_000.0).reshape(4, 10_000))
    loader = DataLoader(dataset, 1, num_workers=1, multiprocessing_context=context)
    kept = []
    for (batch,) in loader:
        batch.add_(1)
        assert not batch.is_shared() and batch.numpy().flags.writeable
        kept.append(batch)
    for number, batch in enumerate(kept):
        assert batch[0, 0].item() == number * 10_000 + 1
    assert pickle.loads(pickle.dumps(kept[1])).tolist() == kept[1].tolist()


def test_segments_are_used_again_when_nobody_looks_at_them():
    dataset = TensorDataset(tg.arange(1_000_000.0).reshape(100, 10_000))
    addresses, kept = set(), []
    batches = iter(DataLoader(dataset, None, num_workers=1, multiprocessing_context="fork"))
    for number, (row,) in enumerate(batches):
        assert row[0].item() == number * 10_000
        addresses.add(row.data_ptr())
        if number % 10 == 0:
            kept.append(row[5:7])  # a view keeps all of it
        del row
    assert len(addresses) < 30
    assert [view[0].item() for view in kept] == [number * 100_000 + 5 for number in range(10)]


def test_many_batches_can_be_kept():
    dataset = TensorDataset(tg.arange(1_000_000.0).reshape(100, 10_000))
    before = len(os.listdir("/proc/self/fd"))
    batches = iter(DataLoader(dataset, None, num_workers=2, multiprocessing_context="fork"))
    rows = [row for (row,) in batches]
    assert len(os.listdir("/proc/self/fd")) - before < 40
    assert [row[0].item() for row in rows] == [number * 10_000.0 for number in range(100)]


def test_a_forked_childs_batch_is_not_written_to_again():
    dataset = TensorDataset(tg.arange(300_000.0).reshape(30, 10_000))
    batches = iter(DataLoader(dataset, None, num_workers=1, multiprocessing_context="fork"))
    (row,) = next(batches)
    begin, go = os.pipe()
    child = os.fork()
    if not child:
        os.read(begin, 1)
        os._exit(int(row[0].item() != 0))
    del row
    for (row,) in batches:
        del row
    os.write(go, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(begin)
    os.close(go)


def test_the_dataset_keeps_what_its_tensors_share(context, programs):
    dataset = programs.Table(4)
    loader = DataLoader(dataset, None, num_workers=2, multiprocessing_context=context)
    assert [row[1].item() for row in loader][1:] == [1001, 2001, 3001]
    assert dataset.counter.item() == 4, "a shared tensor of the dataset is shared with the workers"
    assert dataset.table[0, 0].item() == 0, "others are the workers' own"
    del dataset, loader


# -- seeds


@pytest.mark.parametrize("persistent", [False, True])
def test_seeds_are_reproducible(programs, persistent):
    def throws():
        loader = DataLoader(
            programs.Dice(8), 2, num_workers=2, multiprocessing_context="fork", generator=seeded(),
            persistent_workers=persistent,
        )  # fmt: skip
        return [[plain(batch) for batch in loader] for _ in range(2)]

    first, second = throws()
    assert first != second and throws() == [first, second]
    numbers = {value for batch in first for _, values in batch for value in values}
    assert len(numbers) == 24, "sources, workers and samples all differ"


def test_persistent_workers_change_nothing_but_the_time(programs):
    def throws(persistent):
        loader = DataLoader(
            programs.Dice(6), 2, num_workers=2, generator=seeded(), persistent_workers=persistent,
            multiprocessing_context="fork",
        )  # fmt: skip
        return [[plain(batch) for batch in loader] for _ in range(2)]

    assert throws(True) == throws(False)


def test_worker_init_fn(context, programs):
    loader = DataLoader(
        programs.Noted(2), None, num_workers=2, worker_init_fn=programs.note_start, generator=seeded(),
        multiprocessing_context=context, persistent_workers=True,
    )  # fmt: skip
    (first, seed), (second, next_seed) = loader
    assert (first, second) == (102, 202) and next_seed == seed + 1
    assert [count for count, _ in loader] == [102, 202], "called once in each worker"


# -- streams


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("size", [None, 2])
def test_streams(programs, workers, size):
    loader = DataLoader(programs.Stream(11), size, num_workers=workers, multiprocessing_context="fork")
    for _ in range(2):
        batches = list(loader)
        numbers = batches if size is None else [number for batch in batches for number in batch.tolist()]
        assert sorted(numbers) == list(range(11))
        if size is None and workers > 1:
            assert numbers == list(range(11)), "the workers' samples come in turn"


def test_streams_of_unequal_length(programs):
    loader = DataLoader(programs.Stream(1), None, num_workers=3, multiprocessing_context="fork")
    assert list(loader) == [0] and list(loader) == [0]


# -- passes


def test_a_pass_of_persistent_workers_can_be_left(programs):
    loader = DataLoader(programs.Where(40), 2, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    processes = set()
    for last in (3, 1, 20, 20):
        for number, batch in enumerate(loader):
            assert batch[0].tolist() == [2 * number, 2 * number + 1]
            processes.update(batch[1].tolist())
            if number == last:
                break
    assert len(processes) == 2
    former, newer = iter(loader), iter(loader)
    assert next(newer)[0].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="a newer pass"):
        next(former)


def test_segments_of_a_pass_that_was_left_are_used_again():
    dataset = TensorDataset(tg.zeros(20, 10_000))
    loader = DataLoader(dataset, None, num_workers=1, persistent_workers=True, multiprocessing_context="fork")
    for _ in range(20):
        next(iter(loader))
    with open("/proc/self/maps") as maps:
        assert maps.read().count("memfd:telegrad") < 10
    del loader


def test_batches_as_they_are_ready(programs, tmp_path):
    gate = tmp_path / "gate"
    loader = DataLoader(
        programs.Slow(8, str(gate)), None, num_workers=2, in_order=False, multiprocessing_context="fork"
    )
    batches = iter(loader)
    first = [next(batches) for _ in range(4)]
    gate.touch()
    assert 0 not in first and sorted(first + list(batches)) == list(range(8))


def test_no_more_is_made_in_advance_than_asked(programs, monkeypatch):
    sent = []
    original = tg.data.pool.Worker.send
    monkeypatch.setattr(
        tg.data.pool.Worker, "send", lambda self, message: (sent.append(message), original(self, message))[1]
    )
    batches = iter(DataLoader(programs.Squares(50), num_workers=2, prefetch_factor=3, multiprocessing_context="fork"))
    assert len(sent) == 2 + 6
    next(batches)
    assert len(sent) == 2 + 7


def test_what_the_sampler_gives_may_be_anything(programs, context):
    order = [np.int64(3), tg.tensor(1)]
    loader = DataLoader(programs.Where(5), None, sampler=order, num_workers=1, multiprocessing_context=context)
    assert [int(sample[0]) for sample in loader] == [3, 1]


def test_nothing_to_load(programs):
    assert list(DataLoader(programs.Squares(0), num_workers=2, multiprocessing_context="fork")) == []


def test_closing_twice_and_in_a_forked_child(programs):
    batches = iter(DataLoader(programs.Squares(4), num_workers=1, multiprocessing_context="fork"))
    pool: Pool = batches._pool
    child = os.fork()
    if not child:
        pool.close()
        os._exit(len(pool.workers) - 1)
    assert os.waitpid(child, 0)[1] == 0
    assert next(batches)["number"].item() == 0
    pool.close()
    pool.close()
