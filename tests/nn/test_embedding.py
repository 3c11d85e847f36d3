"""Embedding and EmbeddingBag: PyTorch's recorded values (tests/golden/record_embedding.py), sparse gradients, misuse."""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import TOLERANCES, assert_close, recorded, weighted_sum
from telegrad import nn

F = nn.functional
GOLDEN = recorded("embedding")


def given(inputs, dtype):
    weights = {"per_sample_weights": dtype}
    return {
        name: tg.tensor(np.array(value, weights.get(name, "int64")), requires_grad=name in weights)
        for name, value in inputs.items()
    }


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", GOLDEN["cases"], ids=[f"{c['function']}{n}" for n, c in enumerate(GOLDEN["cases"])])
def test_values_and_gradients_are_pytorchs(case, dtype):
    table = tg.tensor(np.array(GOLDEN["table"], dtype), requires_grad=True)
    inputs = given(case["inputs"], dtype)
    weights = inputs.get("per_sample_weights")
    value = getattr(F, case["function"])(inputs.pop("input"), table, **inputs, **case["options"])
    weighted_sum(value).backward()
    assert_close(value, case["value"], TOLERANCES[dtype])
    assert_close(table, case["table"], TOLERANCES[dtype])
    assert table.grad.is_sparse == (case["rows"] is not None)
    assert table.grad.dtype == value.dtype == dtype
    if case["rows"] is not None:
        assert table.grad._indices().tolist() == [case["rows"]]
    assert_close(table.grad.to_dense(), case["gradient"], TOLERANCES[dtype])
    if weights is not None:
        assert_close(weights.grad, case["weights"], TOLERANCES[dtype])


ROWS = tg.tensor([[1, 2], [2, 2], [0, 1]])


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}])
def test_gradients_of_gradients_of_embedding(options):
    table = tg.randn(4, 2, dtype="float64", requires_grad=True)

    def slope(sparse):
        looked_up = F.embedding(ROWS, table, sparse=sparse, **options)
        (gradient,) = tg.autograd.grad((looked_up**3).sum(), table, create_graph=True)
        return gradient.to_dense()

    assert tg.autograd.gradgradcheck(lambda table: F.embedding(ROWS, table, **options), table)
    of_sparse, of_dense = (tg.autograd.grad(slope(sparse).sum(), table)[0].to_dense() for sparse in (True, False))
    np.testing.assert_allclose(of_sparse.numpy(), of_dense.numpy())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[0, 2, 2, 4], [0, 0, 0], [0]])
def test_gradients_of_bags(mode, offsets):
    table = tg.randn(4, 2, dtype="float64", requires_grad=True)

    def bags(weight):
        return F.embedding_bag(tg.tensor([1, 3, 3, 0, 1]), weight, tg.tensor(offsets), mode=mode, padding_idx=0)

    assert tg.autograd.gradcheck(bags, table)
    assert tg.autograd.gradgradcheck(bags, table)


def test_gradients_of_the_weights_of_a_bag():
    table = tg.randn(4, 2, dtype="float64", requires_grad=True)
    weights = tg.randn(3, 2, dtype="float64", requires_grad=True)

    def bags(table, weights):
        return F.embedding_bag(ROWS, table, mode="sum", per_sample_weights=weights)

    assert tg.autograd.gradcheck(bags, (table, weights))
    assert tg.autograd.gradgradcheck(bags, (table, weights))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("width", [3, 0])
def test_nothing_in_a_bag(mode, width):
    bag = nn.EmbeddingBag(4, width, mode=mode)
    for inputs in ((tg.zeros(2, 0, dtype="int64"),), (tg.zeros(0, dtype="int64"), tg.tensor([0, 0]))):
        value = bag(*inputs)
        assert value.shape == (2, width) and not value.detach().numpy().any()
    assert bag(tg.zeros(0, dtype="int64"), tg.zeros(0, dtype="int64")).shape == (0, width)


def test_the_largest_of_nan_is_nan_and_has_the_gradient():
    table = tg.tensor([[1.0], [float("nan")], [3.0]], requires_grad=True)
    value = F.embedding_bag(tg.tensor([[0, 1, 2]]), table, mode="max")
    value.sum().backward()
    assert np.isnan(value.item()) and table.grad.tolist() == [[0], [1], [0]]


def test_share_by_frequency_is_of_each_row():
    # PyTorch's embedding_bag divides some rows by the frequencies of others.
    table = tg.zeros(6, 1, requires_grad=True)
    bags = tg.tensor([[1, 2], [4, 4], [1, 1]])
    F.embedding_bag(bags, table, mode="sum", scale_grad_by_freq=True).sum().backward()
    np.testing.assert_allclose(table.grad.numpy().reshape(-1), [0, 1, 1, 0, 1, 0], rtol=1e-6)


def test_modules():
    assert repr(nn.EmbeddingBag(3, 2)) == "EmbeddingBag(3, 2, mode='mean')"
    assert repr(nn.EmbeddingBag(3, 2, 1.0, mode="sum", padding_idx=-1)) == (
        "EmbeddingBag(3, 2, max_norm=1.0, mode='sum', padding_idx=2)"
    )
    assert repr(nn.Embedding(3, 2, sparse=True)) == "Embedding(3, 2, sparse=True)"
    bag = nn.EmbeddingBag.from_pretrained(tg.arange(6.0).reshape(3, 2), padding_idx=0)
    assert not bag.weight.requires_grad and bag(tg.tensor([[1, 2, 0]])).tolist() == [[3, 4]]
    assert nn.EmbeddingBag.from_pretrained(tg.zeros(3, 2), freeze=False).weight.requires_grad
    assert list(nn.EmbeddingBag(3, 2).state_dict()) == ["weight"]
    drawn = nn.EmbeddingBag(2000, 5, padding_idx=-2).weight.detach().numpy()
    assert not drawn[1998].any() and abs(drawn.std() - 1) < 0.05


@pytest.mark.parametrize(
    "options",
    [{}, {"padding_idx": 0}, {"scale_grad_by_freq": True}, {"mode": "sum"}],
)
def test_a_model_learns_the_same_from_sparse_gradients(options):
    results = []
    for sparse in (True, False):
        tg.manual_seed(0)
        kind = nn.EmbeddingBag if "mode" in options else nn.Embedding
        model = nn.Sequential(
            kind(10, 4, sparse=sparse, **options), nn.Flatten(), nn.Linear(4 if "mode" in options else 12, 2)
        )
        optimizer = tg.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tg.tensor([[1, 0, 1], [9, 3, 1]])), tg.tensor([0, 1]))
            loss.backward()
            optimizer.step()
        assert model[0].weight.grad.is_sparse == sparse
        results.append(model[0].weight.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-6)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda: nn.EmbeddingBag(3, 2, mode="avg"), ValueError, 'mode must be "sum", "mean" or "max"'),
        (lambda: nn.EmbeddingBag(3, 2, padding_idx=3), ValueError, "within the 3 rows"),
        (lambda: nn.EmbeddingBag(3, 2, _weight=tg.zeros(2, 2)), ValueError, r"must have shape \(3, 2\), not \(2, 2\)"),
        (lambda: nn.EmbeddingBag.from_pretrained(tg.zeros(2)), ValueError, "two dimensions"),
        (lambda: nn.EmbeddingBag(3, 2)(tg.tensor([[3]])), IndexError, "row 3, outside 0..2"),
        (lambda: nn.EmbeddingBag(3, 2)(tg.tensor([1])), ValueError, "needs offsets"),
        (lambda: nn.EmbeddingBag(3, 2)(tg.tensor([[1]]), tg.tensor([0])), ValueError, "takes none for one of 2"),
        (lambda: nn.EmbeddingBag(3, 2)(tg.tensor([1]), tg.tensor([1])), ValueError, r"rise from 0 to at most 1.*\[1\]"),
        (lambda: nn.EmbeddingBag(3, 2)(tg.tensor([1]), tg.tensor([0, 2])), ValueError, "rise from 0"),
        (lambda: nn.EmbeddingBag(3, 2)(tg.tensor(1)), ValueError, "1 or 2 dimensions"),
        (lambda: nn.EmbeddingBag(3, 2, mode="max", sparse=True)(ROWS), ValueError, "neither sparse=True"),
        (
            lambda: nn.EmbeddingBag(3, 2)(ROWS, per_sample_weights=tg.ones(3, 2)),
            NotImplementedError,
            'mode "sum" only',
        ),
        (
            lambda: nn.EmbeddingBag(3, 2, mode="sum")(ROWS, per_sample_weights=tg.ones(3)),
            ValueError,
            r"shape of the input, \(3, 2\), not \(3,\)",
        ),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act()
