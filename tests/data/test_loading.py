"""Datasets, samplers, collation and the loader."""

from collections import namedtuple
from itertools import chain

import numpy as np
import pytest
from telegrad.core import Generator, Tensor, arange, manual_seed, tensor, zeros
from telegrad.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, count):
        self.count = count

    def __getitem__(self, index):
        return index * 10

    def __len__(self):
        return self.count


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


def seeded(seed=1):
    return Generator().manual_seed(seed)


# -- datasets


def test_tensor_dataset():
    dataset = TensorDataset(arange(6).reshape(3, 2), tensor([7, 8, 9]))
    first, second = dataset[1]
    assert len(dataset) == 3 and first.tolist() == [2, 3] and second.item() == 8
    with pytest.raises(ValueError, match=r"tensors of one length.*\[3, 2\]"):
        TensorDataset(zeros(3), zeros(2))
    with pytest.raises(ValueError, match=r"lengths \[\]"):
        TensorDataset()


def test_subset_and_concatenation():
    part = Subset(Numbers(10), [3, 5])
    assert len(part) == 2 and part[1] == 50
    both = Numbers(2) + part
    assert isinstance(both, ConcatDataset) and [both[i] for i in range(4)] == [0, 10, 30, 50] and both[-1] == 50
    with pytest.raises(IndexError, match="sample 4 is out of range: there are 4"):
        both[4]
    assert [ConcatDataset([Numbers(0), Numbers(2)])[i] for i in range(2)] == [0, 10]
    with pytest.raises(TypeError, match="cannot hold an IterableDataset"):
        ConcatDataset([Stream()])
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])


@pytest.mark.parametrize(
    "lengths, sizes",
    [([7, 3], [7, 3]), ([0.5, 0.25, 0.25], [6, 2, 2]), ([0.7, 0.2, 0.1], [7, 2, 1]), ([10, 0], [10, 0]), ([1], [10])],
)
def test_random_split(lengths, sizes):
    parts = random_split(Numbers(10), lengths, generator=seeded())
    assert [len(part) for part in parts] == sizes
    assert sorted(part[i] for part in parts for i in range(len(part))) == list(range(0, 100, 10))
    again = random_split(Numbers(10), lengths, generator=seeded())
    assert [part.indices for part in again] == [part.indices for part in parts]


def test_random_split_misuse():
    with pytest.raises(ValueError, match=r"\[3, 3\] do not add up to the 10 samples"):
        random_split(Numbers(10), [3, 3])
    with pytest.raises(ValueError, match="fractions must be between 0 and 1"):
        random_split(Numbers(10), [1.5, -0.5])
    with pytest.raises(TypeError, match=r"Stream has no length; define __len__\(\)"):
        random_split(Stream(), [1])


@pytest.mark.parametrize(
    "kind, method", [(Dataset, "__getitem__"), (IterableDataset, "__iter__"), (Sampler, "__iter__")]
)
def test_what_subclasses_must_define(kind, method):
    with pytest.raises(NotImplementedError, match=f"{kind.__name__} must define {method}"):
        iter(kind()) if method == "__iter__" else kind()[0]


# -- samplers


def test_sequential_sampler():
    assert list(SequentialSampler(Numbers(3))) == [0, 1, 2] and len(SequentialSampler(Numbers(3))) == 3


def test_random_sampler():
    sampler = RandomSampler(Numbers(50), generator=seeded())
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50)) and first != second
    assert list(RandomSampler(Numbers(50), generator=seeded())) == first
    manual_seed(5)
    one = list(RandomSampler(Numbers(50)))
    manual_seed(5)
    assert list(RandomSampler(Numbers(50))) == one
    assert all(type(number) is int for number in first)


def test_random_sampler_of_another_length():
    longer = list(RandomSampler(Numbers(4), num_samples=10))
    assert len(longer) == 10 and sorted(longer[:4]) == sorted(longer[4:8]) == [0, 1, 2, 3]
    drawn = RandomSampler(Numbers(3), replacement=True, num_samples=100, generator=seeded())
    assert len(drawn) == 100 and set(drawn) == {0, 1, 2}
    assert list(RandomSampler(Numbers(0))) == list(RandomSampler(Numbers(0), replacement=True)) == []
    with pytest.raises(ValueError, match=r"num_samples must be .*you gave 0"):
        RandomSampler(Numbers(3), num_samples=0)


@pytest.mark.parametrize("drop, batches", [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_batch_sampler(drop, batches):
    sampler = BatchSampler(SequentialSampler(Numbers(5)), 2, drop)
    assert list(sampler) == batches and len(sampler) == len(batches)
    with pytest.raises(ValueError, match=r"batch_size must be .*you gave 0"):
        BatchSampler(range(5), 0, False)
    with pytest.raises(ValueError, match="drop_last must be a bool"):
        BatchSampler(range(5), 1, 1)


# -- collation

Pair = namedtuple("Pair", "x y")


def test_collating_numbers():
    assert default_collate([1, 2]).dtype == np.int64 and default_collate([True, False]).dtype == np.bool_
    assert default_collate([0.5, 1.5]).dtype == np.float64
    assert default_collate([np.float32(1), np.float32(2)]).dtype == np.float32
    assert default_collate(["a", "b"]) == ["a", "b"]


def test_collating_containers():
    stacked = default_collate([zeros(2), zeros(2)])
    assert type(stacked) is Tensor and stacked.shape == (2, 2)
    assert default_collate([np.zeros((2, 3))] * 4).shape == (4, 2, 3)
    columns = default_collate([(1, "a"), (2, "b")])
    assert type(columns) is list and columns[0].tolist() == [1, 2] and columns[1] == ["a", "b"]
    pair = default_collate([Pair(1, [2, 3]), Pair(4, [5, 6])])
    assert type(pair) is Pair and pair.x.tolist() == [1, 4] and [c.tolist() for c in pair.y] == [[2, 5], [3, 6]]
    record = default_collate([{"a": 1, "b": {"c": 2.0}}, {"a": 3, "b": {"c": 4.0}}])
    assert record["a"].tolist() == [1, 3] and record["b"]["c"].tolist() == [2, 4]


def test_collating_what_does_not_fit():
    with pytest.raises(ValueError, match=r"different shapes do not make a batch: \(2,\), \(3,\)"):
        default_collate([zeros(2), zeros(3)])
    with pytest.raises(ValueError, match=r"different lengths do not make a batch: \[1, 2\]"):
        default_collate([(1,), (1, 2)])
    with pytest.raises(TypeError, match=r"cannot make a batch of object.*collate_fn"):
        default_collate([object()])


# -- the loader


def flat(loader):
    return [batch.tolist() for batch in loader]


def test_batches_in_order():
    loader = DataLoader(Numbers(5), batch_size=2)
    assert flat(loader) == flat(loader) == [[0, 10], [20, 30], [40]] and len(loader) == 3
    assert flat(DataLoader(Numbers(5), 2, drop_last=True)) == [[0, 10], [20, 30]]
    assert flat(DataLoader(Numbers(2))) == [[0], [10]] and flat(DataLoader(Numbers(0))) == []


def test_shuffled_batches():
    loader = DataLoader(Numbers(40), batch_size=8, shuffle=True, generator=seeded())
    first, second = flat(loader), flat(loader)
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(0, 400, 10)) and first != second
    assert flat(DataLoader(Numbers(40), batch_size=8, shuffle=True, generator=seeded())) == first


def test_samples_as_they_are():
    loader = DataLoader(Numbers(3), batch_size=None)
    assert list(loader) == [0, 10, 20] and len(loader) == 3


def test_samplers_and_collation_of_the_user():
    assert flat(DataLoader(Numbers(5), batch_size=2, sampler=[4, 0, 1])) == [[40, 0], [10]]
    batches = DataLoader(Numbers(5), batch_sampler=[[1], [2, 3]])
    assert flat(batches) == [[10], [20, 30]] and len(batches) == 2
    assert list(DataLoader(Numbers(4), batch_size=2, collate_fn=sum)) == [10, 50]


def test_a_dataset_that_gives_whole_batches():
    class Whole(Numbers):
        def __getitems__(self, numbers):
            return [-number for number in numbers]

    assert flat(DataLoader(Whole(3), batch_size=2)) == [[0, -1], [-2]]


def test_streams():
    assert flat(DataLoader(Stream(), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert flat(DataLoader(Stream(), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError):
        len(DataLoader(Stream()))


def test_tensors_come_in_columns():
    dataset = TensorDataset(arange(8.0).reshape(4, 2), tensor([0, 1, 0, 1]))
    images, labels = next(iter(DataLoader(dataset, batch_size=3)))
    assert images.shape == (3, 2) and labels.tolist() == [0, 1, 0] and not images.requires_grad


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_workers": -1}, "cannot be negative, and you gave -1 and 0"),
        ({"num_workers": 1, "timeout": -1}, "cannot be negative, and you gave 1 and -1"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor must be at least 1"),
        ({"prefetch_factor": 2}, "prefetch_factor needs worker processes"),
        ({"persistent_workers": True}, "persistent_workers needs worker processes"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context needs worker processes"),
        ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler makes the batches"),
        ({"batch_size": None, "drop_last": True}, "drop_last drops incomplete batches"),
        ({"sampler": [0], "shuffle": True}, "a sampler gives the order, so leave out shuffle"),
        ({"batch_size": 0}, "batch_size must be a positive integer"),
    ],
)
def test_misuse_is_told(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Numbers(3), **options)
    with pytest.raises(ValueError, match="an IterableDataset has an order of its own"):
        DataLoader(Stream(), shuffle=True)
