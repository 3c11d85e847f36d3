"""``ElasticSampler``: every sample once an epoch, however often the number of workers changes."""

import random

import pytest
from telegrad.data import ElasticSampler

DATA = range(50)


@pytest.mark.parametrize("per_worker", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_sample_comes_once_an_epoch_for_any_numbers_of_workers(per_worker, seed):
    sizes = random.Random(seed)
    sampler = ElasticSampler(DATA, 8, per_worker=per_worker, seed=seed)
    epochs = {}
    while sampler.epoch < 3:
        workers = sizes.randrange(1, 9)
        batch = sampler.batch(workers)
        assert batch == sampler.batch(workers)  # it moves on only when it is told
        sampler.advance(workers)
        epochs.setdefault(sampler.epoch, []).extend(batch)
        assert len(batch) <= 8 * (workers if per_worker else 1)
    assert all(sorted(epochs[epoch]) == list(DATA) for epoch in range(3))
    assert epochs[0] != epochs[1]


def test_the_batch_is_of_all_workers_or_of_each():
    assert len(ElasticSampler(DATA, 10).batch(4)) == 10
    assert len(ElasticSampler(DATA, 10, per_worker=True).batch(4)) == 40
    assert len(ElasticSampler(DATA, 10, per_worker=True).batch(9)) == 50


def test_the_last_samples_are_left_out_if_asked():
    sampler = ElasticSampler(DATA, 16, shuffle=False, drop_last=True)
    assert [len(batch) for batch in sampler] == [16, 16, 16]
    assert sampler.batch() == list(range(16)) and sampler.epoch == 0
    sampler.advance()
    assert (sampler.epoch, sampler.position) == (1, 16)


def test_a_state_goes_on_inside_an_epoch():
    sampler, other = ElasticSampler(DATA, 8, seed=3), ElasticSampler(DATA, 8)
    for _ in range(9):
        sampler.advance(2)
    other.load_state_dict(sampler.state_dict())
    assert other.batch(3) == sampler.batch(3)
    with pytest.raises(ValueError, match="an epoch, a position and a seed, and you gave"):
        other.load_state_dict({"epoch": 1})


@pytest.mark.parametrize("batch_size", [0, -1, True, 2.0, "8"])
def test_a_wrong_batch_size_is_an_error(batch_size):
    with pytest.raises(ValueError, match="batch_size must be a positive integer, and you gave"):
        ElasticSampler(DATA, batch_size)


def test_a_dataset_without_a_batch_is_an_error():
    with pytest.raises(ValueError, match="a dataset of 0 samples has no batch of 8"):
        ElasticSampler([], 8)
    with pytest.raises(ValueError, match="a dataset of 50 samples has no batch of 51"):
        ElasticSampler(DATA, 51, drop_last=True)
