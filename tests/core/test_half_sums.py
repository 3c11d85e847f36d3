"""Numbers of 16 bits are added up in float32: in bfloat16, 256 + 1 is 256."""

from typing import Any

import numpy as np
import pytest
import telegrad as tg
import telegrad.nn.functional as F
from telegrad import nn

N = 2048
FIRST = tg.zeros(N, dtype=tg.int64)  # an index that names one row N times
FIRSTS = tg.zeros((N, 3), dtype=tg.int64)
ROWS = ((N, 4), (4,))

# By name: a function, and the shapes of its arguments. Each sums thousands of numbers, forwards or backwards.
CASES: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "add": (lambda x, y: x + y, ROWS),
    "add of a column": (lambda x, y: x + y, ((4, N), (4, 1))),
    "mul": (lambda x, y: x * y, ROWS),
    "div": (lambda x, y: x / y, ROWS),
    "pow": (lambda x, y: x**y, ROWS),
    "atan2": (tg.atan2, ROWS),
    "where": (lambda x, y: tg.where(x > 1, y, x), ROWS),
    "prelu": (lambda x, w: F.prelu(-x, w), ROWS),
    "sum": (lambda x: x.sum(0), ((N, 4),)),
    "sum_to_size": (lambda x: x.sum_to_size(1, 4), ((N, 4),)),
    "mean": (lambda x: x.mean(0), ((N, 4),)),
    "std": (lambda x: x.std(0), ((N, 4),)),
    "logsumexp": (lambda x: x.logsumexp(0), ((N, 4),)),
    "softmax": (lambda x: x.softmax(0), ((N, 4),)),
    "log_softmax": (lambda x: x.log_softmax(1), ((4, N),)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), ((N, 4),)),
    "trapezoid": (lambda x: tg.trapezoid(x, dim=0), ((N, 4),)),
    "vector_norm": (lambda x: tg.linalg.vector_norm(x, 1, 0), ((N, 4),)),
    "normalize": (lambda x: F.normalize(x, dim=0), ((N, 4),)),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y, 0), ((N, 4), (N, 4))),
    "cdist": (lambda x, y: tg.cdist(x, -y), ((4, N), (3, N))),
    "cross": (lambda x, y: tg.linalg.cross(x, y), ((N, 3), (1, 3))),
    "expand": (lambda x: x.expand(N, 4), ((4,),)),
    "repeat": (lambda x: x.repeat(N, 1), ((4,),)),
    "repeat_interleave": (lambda x: x.repeat_interleave(N, 0), ((4,),)),
    "meshgrid": (lambda x, y: sum(tg.meshgrid(x, y, indexing="ij")), ((N,), (3,))),
    "unfold": (lambda x: x.unfold(0, 512, 1), ((1024,),)),
    "as_strided": (lambda x: x.as_strided((N, 2), (0, 1)), ((4,),)),
    "index": (lambda x: x[FIRST], ((4, 3),)),
    "index_select": (lambda x: x.index_select(0, FIRST), ((4, 3),)),
    "gather": (lambda x: x.gather(0, FIRSTS), ((4, 3),)),
    "index_add": (lambda x, y: x.index_add(0, FIRST, y), ((4, 3), (N, 3))),
    "index_put": (lambda x, y: x.index_put((FIRST,), y, accumulate=True), ((4, 3), (N, 3))),
    "scatter_add": (lambda x, y: x.scatter_add(0, FIRSTS, y), ((4, 3), (N, 3))),
    "scatter_reduce": (lambda x, y: x.scatter_reduce(0, FIRSTS, y, "mean"), ((4, 3), (N, 3))),
    "embedding": (lambda x: F.embedding(FIRST, x), ((4, 3),)),
    "embedding_bag": (lambda x: F.embedding_bag(FIRST.reshape(2, -1), x, mode="mean"), ((4, 3),)),
    "matmul": (lambda x, y: x @ y, ((N, 2, 3), (1, 3, 2))),
    "matmul of a vector": (lambda x, y: x @ y, ((3,), (N, 3, 2))),
    "addmm": (lambda b, x, y: tg.addmm(b, x, y), ((3,), (N, 3), (3, 3))),
    "addr": (lambda b, x, y: tg.addr(b, x, y), ((3,), (N,), (3,))),
    "einsum": (lambda x, y: tg.einsum("ij,ij->j", x, y), ((N, 3), (N, 3))),
    "kron": (lambda x, y: tg.kron(x, y), ((N, 1), (2, 2))),
    "linear": (F.linear, ((16, N // 16, 4), (2, 4), (2,))),
    "bilinear": (F.bilinear, ((N, 2), (N, 2), (3, 2, 2), (3,))),
    "conv1d": (F.conv1d, ((4, 2, N // 2), (3, 2, 3), (3,))),
    "conv2d of small images": (F.conv2d, ((N, 2, 3, 3), (2, 2, 3, 3), (2,))),
    "conv_transpose2d": (F.conv_transpose2d, ((16, 2, 32, 32), (2, 3, 3, 3), (3,))),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 1024), ((2, 1, N),)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2, 32), ((2, 1, 64, 64),)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 3), ((2, 2, N),)),
    "fold": (lambda x: F.fold(x, (32, 32), 16), ((1, 256, 289),)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=32, mode="bicubic"), ((1, 1, 4, 4),)),
    "grid_sample": (
        lambda x: F.grid_sample(x, tg.zeros((1, 64, 64, 2), dtype=x.dtype), align_corners=False),
        ((1, 1, 4, 4),),
    ),
    "pad": (lambda x: F.pad(x, (2000, 2000), "replicate"), ((1, 1, 8),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((N, 4), (4,), (4,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), ((64, 4, 64), (4,), (4,))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((N, 4), (4,), (4,))),
    "cross_entropy": (lambda x: F.cross_entropy(x, FIRST, reduction="sum") / N, ((N, 4),)),
    "nll_loss": (lambda x: F.nll_loss(x, FIRST), ((N, 4),)),
    "ctc_loss": (
        lambda x: F.ctc_loss(x.log_softmax(-1), tg.ones((1, 5), dtype=tg.int64), (256,), (5,)),
        ((256, 1, 8),),
    ),
    "attention": (F.scaled_dot_product_attention, ((1, 1, N, 4), (1, 1, 3, 4), (1, 1, 3, 4))),
}


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_near_those_of_float64(name: str, dtype: Any) -> None:
    function, shapes = CASES[name]
    rng = np.random.default_rng(0)
    given = [tg.tensor(rng.uniform(0.5, 1.5, shape)).to(dtype) for shape in shapes]
    found, exact = (_derived(function, [x.to(kind) for x in given], dtype) for kind in (dtype, tg.float64))
    for ours, right in zip(found, exact):
        error = np.abs(ours - right).max() / np.abs(right).max()
        assert error < 16 * tg.finfo(dtype).eps


def _derived(function: Any, inputs: list[Any], dtype: Any) -> list[Any]:
    inputs = [x.requires_grad_() for x in inputs]
    result = function(*inputs)
    weights = tg.tensor(np.random.default_rng(1).uniform(0.5, 1.5, result.shape)).to(dtype).to(result.dtype)
    grads = tg.autograd.grad(result, inputs, weights)
    return [np.atleast_1d(x.detach().to(tg.float64).numpy()) for x in (result, *grads)]


def test_a_mean_is_divided_before_it_could_overflow() -> None:
    x = tg.full((1, 1, 16, 16), 1000.0, dtype=tg.float16)
    assert F.avg_pool2d(x, 16).item() == 1000
    assert F.lp_pool2d(x, 1, 16).item() == np.inf  # the sum itself is too large


def test_biases_get_whole_gradients_under_autocast() -> None:
    conv, linear = nn.Conv2d(1, 1, 1), nn.Linear(4, 1)
    with tg.autocast("cpu"):
        conv(tg.ones(16, 1, 32, 32)).mean().backward()
        linear(tg.ones(8192, 4)).sum().backward()
    assert conv.bias.grad.item() == 1
    assert linear.bias.grad.item() == 8192


def test_the_norm_of_all_gradients_is_computed_in_float32() -> None:
    total = nn.utils.get_total_norm([tg.ones(N, dtype=tg.float16) * 16, tg.ones(N, dtype=tg.float16) * 16])
    assert total.dtype == tg.float16
    assert total.item() == pytest.approx(16 * (2 * N) ** 0.5, rel=1e-3)


def test_gumbel_softmax_of_bfloat16() -> None:
    result = F.gumbel_softmax(tg.zeros(2, 3, dtype=tg.bfloat16))
    assert result.dtype == tg.bfloat16
    assert np.isfinite(result.float().numpy()).all()
