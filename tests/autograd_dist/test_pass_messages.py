"""Requests and answers of passes come out as they went in, and need no pickle unless gradients are sparse."""

import random

import numpy as np
import pytest
import telegrad as tg
from telegrad.autograd_dist.local_pass import PassKind, Unfed
from telegrad.autograd_dist.pass_messages import PassRequest, open_answer, open_request, pack_answer, pack_request
from telegrad.rpc.calls.codec import pack_bare
from telegrad.rpc.wire.messages import Outgoing


def some_entries(rng):
    kinds = [rng.choice([PassKind.FED, PassKind.UNUSED, PassKind.QUERY]) for _ in range(rng.randrange(4))]
    return [(kind, rng.getrandbits(63), gradients(rng) if kind == PassKind.FED else []) for kind in kinds]


def gradients(rng):
    shapes = [(), (0, 3), (2, 3), (5,)]
    return [None if rng.random() < 0.3 else np.full(rng.choice(shapes), rng.random()) for _ in range(rng.randint(1, 4))]


def assert_same(found, expected):
    assert [each[:2] for each in found] == [each[:2] for each in expected]
    for (*_, one), (*_, other) in zip(found, expected):
        assert [each is None for each in one] == [each is None for each in other]
        for left, right in zip(one, other):
            assert right is None or (left.numpy().shape == right.shape and (left.numpy() == right).all())


def test_requests_and_answers_come_out_as_they_went_in():
    for seed in range(300):
        rng = random.Random(seed)
        entries = some_entries(rng)
        request = PassRequest(rng.getrandbits(63), (3, 70_000, 69_000), rng.random() < 0.5, rng.random() < 0.5, entries)
        found = open_request(pack_request(*request))
        assert found[:4] == request[:4], f"seed {seed}"
        assert_same(found.entries, entries)
        reports = {
            rank: (rng.randrange(9), [Unfed(rng.getrandbits(63), 2, 1)] * rng.randrange(3))
            for rank in rng.sample(range(9), rng.randrange(4))
        }
        entries_found, reports_found = open_answer(pack_answer(entries, reports))
        assert reports_found == reports, f"seed {seed}"
        assert_same(entries_found, entries)


def test_nothing_to_say_is_an_empty_message():
    assert pack_answer([], {}) is None
    assert open_answer(None) == ((), {})


@pytest.mark.parametrize("sparse", [False, True])
def test_dense_gradients_need_no_pickle(sparse):
    gradient = tg.ones(2, 3).to_sparse() if sparse else np.ones((2, 3))
    message = Outgoing(32, 1, 0.0, 1)
    body = pack_request(1, (0, 1, 1), False, True, [(PassKind.FED, 7, [gradient, None])])
    assert pack_bare(message, body, 1 << 20) != sparse
