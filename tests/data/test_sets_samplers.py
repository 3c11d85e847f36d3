"""Datasets made of others, samplers by weight and by rank, and whole batches at once."""

from collections import OrderedDict, UserDict, namedtuple

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.process_group_place import Place, set_place
from telegrad.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, count, whole=False):
        self.count = count
        if whole:
            self.__getitems__ = lambda indices: [-index for index in indices]

    def __getitem__(self, index):
        return index * 10

    def __len__(self):
        return self.count


class Stream(IterableDataset):
    def __init__(self, *numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)

    def __len__(self):
        return len(self.numbers)


def seeded(seed=1):
    return tg.Generator().manual_seed(seed)


# -- datasets


def test_chains():
    chain = Stream(1, 2) + Stream() + Stream(3)
    assert (
        isinstance(chain, ChainDataset) and list(chain) == [1, 2, 3] and len(ChainDataset([Stream(1), Stream(2)])) == 2
    )
    assert [batch.tolist() for batch in DataLoader(chain, 2)] == [[1, 2], [3]]
    with pytest.raises(TypeError, match=r"IterableDatasets.*Numbers"):
        list(ChainDataset([Numbers(1)]))


def test_stacks():
    by_place, by_name = (
        StackDataset(Numbers(3), Numbers(3, True)),
        StackDataset(a=Numbers(3), b=TensorDataset(tg.arange(3))),
    )
    assert len(by_place) == 3 and by_place[2] == (20, 20) and by_place.__getitems__([1, 2]) == [(10, -1), (20, -2)]
    assert by_name[1]["a"] == 10 and by_name[1]["b"][0].item() == 1
    batch = default_collate(by_name.__getitems__([2, 0]))
    assert batch["a"].tolist() == [20, 0] and batch["b"][0].tolist() == [2, 0]
    for args, kwargs in [((), {}), ((Numbers(1),), {"a": Numbers(1)})]:
        with pytest.raises(ValueError, match="either all by position or all by name"):
            StackDataset(*args, **kwargs)
    with pytest.raises(ValueError, match=r"of one length, and you gave lengths \[1, 2\]"):
        StackDataset(Numbers(1), Numbers(2))


def test_a_batch_of_the_wrong_length_is_told():
    wrong = Numbers(3)
    wrong.__getitems__ = lambda indices: [0]
    with pytest.raises(ValueError, match=r"Numbers.__getitems__\(\) gave 1 samples for 2 numbers"):
        StackDataset(wrong).__getitems__([0, 1])


@pytest.mark.parametrize(
    "make",
    [
        lambda data: data,
        lambda data: Subset(data, [5, 4, 3, 2, 1, 0]),
        lambda data: random_split(data, [1, 5], seeded())[1],
        lambda data: StackDataset(data),
        lambda data: ConcatDataset([data, data]),
    ],
    ids=["itself", "subset", "split", "stack", "concatenation"],
)
@pytest.mark.parametrize("collate", [None, lambda samples: default_collate(samples), lambda samples: list(samples)])
def test_whole_batches_are_what_single_samples_are(make, collate):
    rows, labels = tg.randn(6, 2, 3), tg.arange(6)

    class OneByOne(TensorDataset):
        """An overridden __getitem__ turns the short cut off."""

        def __getitem__(self, index):
            return super().__getitem__(index)

    def batches(dataset):
        return repr(list(DataLoader(make(dataset), 4, collate_fn=collate)))

    assert batches(TensorDataset(rows, labels)) == batches(OneByOne(rows, labels))


def test_whole_batches_are_recorded():
    rows = tg.ones(4, 2, requires_grad=True)
    for (batch,) in DataLoader(TensorDataset(rows), 2):
        (batch * 3).sum().backward()
    assert rows.grad.tolist() == [[3, 3]] * 4


def test_changed_subsets_are_asked_one_by_one():
    class Negative(Subset):
        def __getitem__(self, index):
            return -super().__getitem__(index)

    assert [b.tolist() for b in DataLoader(Negative(Numbers(5), [1, 2]), 2)] == [[-10, -20]]


# -- samplers


def test_subset_random_sampler():
    sampler = SubsetRandomSampler([3, 5, 7], seeded())
    first, second = [list(sampler) for _ in range(2)], [list(sampler) for _ in range(2)]
    assert len(sampler) == 3 and all(sorted(order) == [3, 5, 7] for order in first + second)
    assert list(SubsetRandomSampler([3, 5, 7], seeded())) == first[0]


def test_weighted_random_sampler():
    sampler = WeightedRandomSampler([0, 1, 3], 4000, generator=seeded())
    drawn = np.bincount(list(sampler), minlength=3)
    assert len(sampler) == 4000 and drawn[0] == 0 and abs(drawn[2] / drawn[1] - 3) < 0.5
    once = WeightedRandomSampler(tg.tensor([0.2, 0.0, 0.1, 0.9]), 3, replacement=False, generator=seeded())
    assert sorted(once) == [0, 2, 3] and list(once) != list(once)
    assert list(WeightedRandomSampler([1, 1], 5, generator=seeded())) == list(
        WeightedRandomSampler([1, 1], 5, generator=seeded())
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([1], 0), "num_samples must be a positive integer, and you gave 0"),
        (([1], 1, 2), "replacement must be a bool, and you gave 2"),
        (([[1]], 1), "weights must be a vector"),
        (([-1, 1], 1), "weights must be a vector of numbers that are not negative"),
        (([0, 0], 1), "weights must be a vector"),
        (([float("nan")], 1), "weights must be a vector"),
        (([0, 1, 1], 3, False), "3 samples need as many positive weights, and you gave 2"),
    ],
)
def test_weights_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        WeightedRandomSampler(*arguments)


@pytest.mark.parametrize("drop, size", [(False, 4), (True, 3)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_distributed_sampler(drop, size, shuffle):
    samplers = [DistributedSampler(Numbers(10), 3, rank, shuffle, seed=7, drop_last=drop) for rank in range(3)]
    orders = [list(sampler) for sampler in samplers]
    assert all(len(order) == len(sampler) == size for order, sampler in zip(orders, samplers))
    together = [number for turn in zip(*orders) for number in turn]
    if not shuffle:
        assert together == [*range(10), 0, 1][: 3 * size]
    assert len(set(together)) == (9 if drop else 10) and orders == [list(sampler) for sampler in samplers]
    for sampler in samplers:
        sampler.set_epoch(1)
    assert ([list(sampler) for sampler in samplers] != orders) == shuffle


def test_distributed_sampler_of_tiny_datasets():
    assert [list(DistributedSampler(Numbers(2), 5, rank, shuffle=False)) for rank in range(5)] == [
        [0],
        [1],
        [0],
        [1],
        [0],
    ]
    assert (
        list(DistributedSampler(Numbers(0), 2, 0)) == list(DistributedSampler(Numbers(1), 2, 1, drop_last=True)) == []
    )


def test_distributed_sampler_asks_the_environment(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(ValueError, match=r"needs num_replicas: .* no launcher has set WORLD_SIZE"):
        DistributedSampler(Numbers(4))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert list(DistributedSampler(Numbers(4), shuffle=False)) == [1, 3]
    with pytest.raises(ValueError, match="rank must be from 0 to 1, and you gave 2"):
        DistributedSampler(Numbers(4), rank=2)


def test_a_distributed_sampler_asks_the_process_group_before_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    set_place(Place(1, 2))
    try:
        assert list(DistributedSampler(Numbers(8), shuffle=False)) == [1, 3, 5, 7]
        assert list(DistributedSampler(Numbers(8), 4, shuffle=False)) == [1, 5]
    finally:
        set_place(None)
    assert list(DistributedSampler(Numbers(8), shuffle=False)) == [3, 7]


# -- collation

Pair = namedtuple("Pair", "x y")


def test_converting():
    converted = default_convert({"a": np.arange(2), "b": (1, np.float32(2)), "c": ["x", b"y", np.array(["z"])]})
    assert converted["a"].tolist() == [0, 1] and type(converted["a"]) is tg.Tensor
    assert converted["b"][0] == 1 and converted["b"][1].dtype == tg.float32 and type(converted["b"]) is list
    assert converted["c"][:2] == ["x", b"y"] and type(converted["c"][2]) is np.ndarray
    assert type(default_convert(Pair(np.ones(1), 2)).x) is tg.Tensor and default_convert(None) is None
    assert type(default_convert(OrderedDict(a=1))) is OrderedDict
    (sample,) = DataLoader([np.ones(2)], batch_size=None)
    assert type(sample) is tg.Tensor


def test_collating_keeps_classes_of_containers():
    for kind in (OrderedDict, UserDict):
        batch = default_collate([kind(a=1), kind(a=2)])
        assert type(batch) is kind and batch["a"].tolist() == [1, 2]


def test_collating_scalars_and_dtypes():
    assert default_collate([tg.tensor(1.0), tg.tensor(2.0)]).tolist() == [1, 2]
    assert default_collate([tg.zeros(0, 2), tg.zeros(0, 2)]).shape == (2, 0, 2)
    assert default_collate([tg.ones(1), tg.ones(1, dtype=tg.float64)]).dtype == tg.float64
    assert default_collate([b"a", b"b"]) == [b"a", b"b"] and default_collate(["a"]) == ["a"]
    assert default_collate([np.bool_(True)]).dtype == tg.bool_


def test_collating_is_recorded():
    a, b = tg.ones(2, requires_grad=True), tg.ones(2)
    (default_collate([a, b]) * tg.tensor([[2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert a.grad.tolist() == [2, 3]


def test_collating_a_subclass():
    class Named(tg.Tensor):
        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            seen.append(func.__name__)
            return super().__tensor_function__(func, types, args, kwargs)

    seen = []
    assert default_collate([Named([1.0]), Named([2.0])]).tolist() == [[1], [2]] and "stack" in seen
