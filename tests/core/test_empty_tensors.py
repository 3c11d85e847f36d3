"""A tensor without elements has an array like any other: operations, gradients, calls, files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn, rpc

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3)]


@pytest.fixture(params=SHAPES, ids=str)
def empty(request):
    return tg.empty(*request.param, requires_grad=True)


def test_it_has_memory_and_answers_all_queries(empty):
    array = empty.numpy(force=True)
    assert isinstance(array, np.ndarray) and isinstance(empty.data_ptr(), int) and empty.storage_offset() == 0
    assert (empty.shape, empty.numel(), empty.nbytes) == (array.shape, 0, 0) and empty.is_contiguous()
    assert empty.stride() == tuple(step // 4 for step in array.strides) and empty.tolist() == array.tolist()
    assert repr(empty) and str(empty.detach()) and empty.detach().data_ptr() == empty.data_ptr()
    assert np.from_dlpack(empty.detach()).shape == array.shape


OPERATIONS = {
    "arithmetic": lambda a: a * 2 + a / 3 - 1,
    "functions": lambda a: a.exp().tanh().relu(),
    "reductions": lambda a: a.sum() + a.prod(),
    "along": lambda a: a.sum(-1),
    "cumulative": lambda a: a.cumsum(0),
    "shapes": lambda a: a.reshape(-1).unsqueeze(0).T,
    "views": lambda a: a.transpose(0, -1)[..., None],
    "joining": lambda a: tg.cat([a, a], 0) if a.ndim else a,
    "products": lambda a: a.flatten() @ a.flatten() + (a[..., None] @ a[..., None, :]).sum(),
    "indexing": lambda a: a[a > 0],
    "sorting": lambda a: a.sort(0).values,
    "in place": lambda a: (a * 1).add_(a).mul_(2),
    "norms": lambda a: a.norm(),
    "softmax": lambda a: a.softmax(0),
    "dropout": lambda a: nn.functional.dropout(a, 0.5),
    "where": lambda a: tg.where(a > 0, a, 1.0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_and_gradients(empty, name):
    result = OPERATIONS[name](empty)
    result.sum().backward()
    assert empty.grad.shape == empty.shape
    with tg.no_grad():
        assert OPERATIONS[name](empty).shape == result.shape
    (gradient,) = tg.autograd.grad(OPERATIONS[name](empty).sum(), empty, create_graph=True)
    assert gradient.shape == empty.shape


def test_copies_and_files(empty, tmp_path):
    tg.save({"empty": empty}, tmp_path / "file")
    for made in (
        tg.load(tmp_path / "file")["empty"],
        pickle.loads(pickle.dumps(empty)),
        copy.deepcopy(empty),
        empty.detach().clone(),
        empty.detach().clone().share_memory_(),
    ):
        assert (
            made.shape == empty.shape and made.dtype == empty.dtype and isinstance(made.numpy(force=True), np.ndarray)
        )


def test_calls_and_gradients_through_them(workers, empty):
    assert rpc.rpc_sync("b", tg.exp, (empty,)).shape == empty.shape
    with tg.autograd_dist.context() as context:
        y = rpc.rpc_sync("b", tg.mul, (empty, 2))
        assert y.shape == empty.shape
        tg.autograd_dist.backward(context, [y.sum()])
        assert tg.autograd_dist.get_gradients(context)[empty].shape == empty.shape
    with rpc.remote("b", tg.zeros, empty.shape) as reference:
        assert reference.to_here().shape == empty.shape


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("shape", [(0, 4, 8), (5, 0, 8), (0, 0, 8)], ids=str)
def test_attention_and_transformers_take_no_batch_and_no_steps(shape, batch_first):
    x = tg.ones(*shape, requires_grad=True)
    batch, steps = shape[:2] if batch_first else shape[1::-1]
    attention = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    result, weights = attention(x, x, x, key_padding_mask=tg.zeros(batch, steps, dtype=tg.bool))
    assert result.shape == shape and weights.shape == (batch, steps, steps)
    for layer, count in (
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first), 1),
        (nn.TransformerDecoderLayer(8, 2, 16, batch_first=batch_first), 2),
        (nn.Transformer(8, 2, 1, 1, 16, batch_first=batch_first), 2),
    ):
        result = layer(*(x,) * count)
        assert result.shape == shape
        result.sum().backward()
        assert x.grad.shape == shape and all(not parameter.grad.any() for parameter in layer.parameters())


def test_attention_to_no_keys_and_of_no_features():
    some, none = tg.ones(2, 3, 8), tg.ones(2, 0, 8)
    assert nn.MultiheadAttention(8, 2, batch_first=True)(some, none, none)[0].shape == (2, 3, 8)
    scores = nn.functional.scaled_dot_product_attention(tg.ones(2, 3, 0), tg.ones(2, 4, 0), tg.ones(2, 4, 5))
    assert scores.tolist() == np.ones((2, 3, 5)).tolist()


@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_recurrent_layers_take_no_batch(layer):
    module, is_cell = layer(3, 2), layer.__name__.endswith("Cell")
    x = tg.ones(*(0, 3) if is_cell else (4, 0, 3), requires_grad=True)
    result = module(x)
    result = result[0] if isinstance(result, tuple) else result
    assert result.shape == (*x.shape[:-1], 2)
    result.sum().backward()
    assert x.grad.shape == x.shape and all(not parameter.grad.any() for parameter in module.parameters())


def test_batch_norm_of_no_samples_gives_its_weight_no_gradient():
    layer = nn.BatchNorm1d(3)
    layer(tg.ones(0, 3)).sum().backward()
    assert layer.weight.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (2, 0)], ids=str)
def test_the_largest_norm_of_a_matrix_without_elements_is_0(shape):
    matrix = tg.zeros(*shape)
    assert tg.linalg.norm(matrix, 2).item() == tg.linalg.matrix_norm(matrix, "nuc").item() == 0
    assert tg.linalg.matrix_norm(tg.zeros(3, *shape), 2).tolist() == [0, 0, 0]
    if not shape[1]:
        assert tg.linalg.norm(matrix, 1).item() == 0
    if not shape[0]:
        assert tg.linalg.norm(matrix, float("inf")).item() == 0
    with pytest.raises(ValueError, match="needs elements"):
        tg.linalg.norm(matrix, -2)


def test_linear_algebra_and_samples_of_nothing():
    assert tg.linalg.cond(tg.zeros(0, 0)).item() == 0
    assert tg.linalg.tensorinv(tg.zeros(0, 0), 1).shape == (0, 0)
    assert tg.multinomial(tg.ones(0, 3), 2).shape == (0, 2)
    assert tg.multinomial(tg.ones(0, 3), 2, replacement=True).shape == (0, 2)


@pytest.mark.parametrize(
    "shapes", [[(0, 2), (2, 2), (1, 1)], [(0,), (2, 2)], [(2, 2), (0,), (2, 0), (2,), ()]], ids=str
)
def test_gradients_of_block_diag_beside_empty_blocks(shapes):
    blocks = [tg.rand(*shape, dtype=tg.float64, requires_grad=True) for shape in shapes]
    assert tg.autograd.gradcheck(tg.block_diag, blocks)
