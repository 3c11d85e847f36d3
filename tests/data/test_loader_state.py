"""The state of a loader: another one gives the batches that its last loop has not got, no sample twice and none lost."""

import pytest
import telegrad as tg
from telegrad.data import (
    BatchSampler,
    DataLoader,
    DataLoaderError,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)


class Stream(IterableDataset):
    def __iter__(self):
        info = tg.data.get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(start, 23, step))


class Saved(Sampler):
    """A sampler of a user that draws while a pass runs, and has a state."""

    def __init__(self):
        self.generator = tg.Generator().manual_seed(1)

    def __iter__(self):
        for _ in range(23):
            yield int(tg.randint(23, (1,), generator=self.generator))

    def state_dict(self):
        return self.generator.state_dict()

    def load_state_dict(self, state_dict):
        self.generator.load_state_dict(state_dict)


NUMBERS = TensorDataset(tg.arange(23))


def seeded():
    return tg.Generator().manual_seed(8)


LOADERS = {
    "in order": lambda **more: DataLoader(NUMBERS, 4, **more),
    "shuffled": lambda **more: DataLoader(NUMBERS, 4, shuffle=True, **more),
    "own generator": lambda **more: DataLoader(NUMBERS, 4, shuffle=True, generator=seeded(), **more),
    "sampler's generator": lambda **more: DataLoader(
        NUMBERS, 4, sampler=RandomSampler(NUMBERS, generator=seeded()), **more
    ),
    "subset": lambda **more: DataLoader(NUMBERS, 2, sampler=SubsetRandomSampler(range(3, 20)), **more),
    "weighted": lambda **more: DataLoader(NUMBERS, 4, sampler=WeightedRandomSampler([1.0] * 23, 23), **more),
    "batches": lambda **more: DataLoader(NUMBERS, batch_sampler=BatchSampler(RandomSampler(NUMBERS), 4, True), **more),
    "distributed": lambda **more: DataLoader(NUMBERS, 2, sampler=DistributedSampler(NUMBERS, 2, 1, seed=3), **more),
    "single": lambda **more: DataLoader(NUMBERS, None, shuffle=True, **more),
    "stream": lambda **more: DataLoader(Stream(), 4, **more),
    "user's": lambda **more: DataLoader(NUMBERS, 4, sampler=Saved(), **more),
}


def values(batch):
    return (batch[0] if isinstance(batch, (list, tuple)) else batch).reshape(-1).tolist()


def take(loader, most=None):
    """Return the samples of each batch that the loop gets before it is left."""
    found = []
    if most == 0:
        return found
    for batch in loader:
        found.append(values(batch))
        if len(found) == most:
            break
    return found


def three_passes(make, **more):
    tg.manual_seed(4)
    loader = make(**more)
    return [take(loader) for _ in range(3)]


def interrupted(make, batches, more=None, again=None):
    """Return the batches of the second pass, which is left after some and gone on with by another loader, and the third."""
    tg.manual_seed(4)
    loader = make(**(more or {}))
    take(loader)
    begun = take(loader, batches)
    state, random = loader.state_dict(), tg.get_rng_state()
    tg.manual_seed(77)
    other = make(**(again or {}))
    tg.set_rng_state(random)
    other.load_state_dict(state)
    assert other.epoch == 1 + (batches is None)
    return begun + take(other), take(other)


@pytest.mark.parametrize("kind", LOADERS)
def test_a_loop_goes_on_where_it_was_left(kind):
    _, second, third = three_passes(LOADERS[kind])
    for batches in range(1, len(second) + 1):
        assert interrupted(LOADERS[kind], batches) == (second, third), batches


def test_before_a_pass_and_after_its_end_the_next_is_whole():
    _, second, third = three_passes(LOADERS["shuffled"])
    assert interrupted(LOADERS["shuffled"], 0) == (second, third)
    assert interrupted(LOADERS["shuffled"], None)[0] == second + third


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "workers"),
    [
        *[(kind, workers) for kind in ("shuffled", "own generator") for workers in ((2, 2), (2, 0), (0, 2))],
        ("stream", (2, 2)),  # its parts are the workers', so their number must stay
    ],
)
def test_batches_that_workers_made_in_advance_do_not_count(kind, workers):
    more, again = ({"num_workers": count} | ({"multiprocessing_context": "fork"} if count else {}) for count in workers)
    _, second, third = three_passes(LOADERS[kind], **more)
    assert interrupted(LOADERS[kind], 2, more, again) == (second, third)


@pytest.mark.processes
@pytest.mark.slow
def test_batches_out_of_order_come_once():
    more = {"num_workers": 2, "in_order": False, "multiprocessing_context": "fork", "prefetch_factor": 3}
    for batches in (1, 3, 5):
        second, _ = interrupted(LOADERS["shuffled"], batches, more, more)
        assert sorted(number for batch in second for number in batch) == list(range(23))
    with pytest.raises(DataLoaderError, match="cannot be repeated"):
        LOADERS["stream"](**more).state_dict()


def test_a_state_of_a_state_is_the_same():
    """A loader that has loaded a state and given nothing has that state."""
    make = LOADERS["shuffled"]
    tg.manual_seed(4)
    expected = take(make())
    tg.manual_seed(4)
    loader = make()
    take(loader, 2)
    for _ in range(3):
        state = loader.state_dict()
        loader = make()
        loader.load_state_dict(state)
    assert take(loader) == expected[2:]


@pytest.mark.parametrize("state", [{}, {"place": {}, "now": {}}, {"place": 3, "now": None}])
def test_another_state_is_refused(state):
    with pytest.raises(DataLoaderError, match="not the state_dict"):
        DataLoader(NUMBERS).load_state_dict(state)


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_a_state_from_before_the_first_batch_goes_on_with_another_order_in_the_next_pass(make):
    tg.manual_seed(5)
    whole = make()
    expected = [list(map(str, whole)) for _ in range(2)]
    tg.manual_seed(5)
    stopped = make()
    iter(stopped)
    state, default = stopped.state_dict(), tg.default_generator.get_state()
    tg.manual_seed(99)
    resumed = make()
    resumed.load_state_dict(state)
    tg.default_generator.set_state(default)
    assert [list(map(str, resumed)) for _ in range(2)] == expected
