"""Requests and answers of passes come out as they went in, and need no pickle."""

import random

import numpy as np
import pytest
import telegrad as tg
from telegrad.autograd_dist.local_pass import PassKind, Unfed
from telegrad.autograd_dist.pass_messages import PassRequest, open_answer, open_request, pack_answer, pack_request
from telegrad.rpc.wire.messages import NO_ATTACHMENTS, Outgoing
from telegrad.rpc.wire.raw_body import pack_raw


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
            assert right is None or (left.shape == right.shape and (left == right).all())


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


@pytest.mark.parametrize("coalesced", [False, True])
def test_sparse_gradients_come_out_as_they_went_in(coalesced):
    sparse = tg.sparse_coo_tensor([[2, 0, 2]], tg.arange(6.0).reshape(3, 2), (4, 2))
    given = sparse.coalesce() if coalesced else sparse
    entries = [(PassKind.FED, 7, [given, None, np.ones(3)])]
    ((_, _, (found, missing, dense)),) = open_request(pack_request(1, (0, 1, 1), False, True, entries)).entries
    assert found.is_coalesced() == coalesced and found._nnz() == given._nnz() and missing is None
    assert found.to_dense().tolist() == given.to_dense().tolist() and dense.tolist() == [1.0] * 3


def test_small_gradients_are_in_the_body():
    message = Outgoing(32, 1, 0.0, 1)
    gradients = [np.ones((2, 3)).T, np.broadcast_to(1.0, (2, 3)), tg.ones(2, 3).to_sparse(), None]
    assert pack_raw(message, pack_request(1, (0, 1, 1), False, True, [(PassKind.FED, 7, gradients)]), 1 << 20)
    assert message.attached is NO_ATTACHMENTS
