"""Checks of losses, distances and rearrangements in ``nn.functional``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...core import Tensor, tensor
from ...nn import functional as F
from ...nn.functional.linear_cross_entropy import LinearCrossEntropyOptions
from ...nn.functional.native import grid_sampler_2d, grid_sampler_3d
from ...testing.ops import Make, OpCheck, Samples

CLASSES = tensor([0, 2, 1, 1])
SIGNS = Tensor(np.array([1.0, -1.0, -1.0, 1.0]))


def _like(*names: str, shapes: tuple[tuple[int, ...], ...] = ((4, 3), (), (0, 2), (2, 1, 3))) -> Samples:
    """Return samples of tensors of one shape, one for each name: "x" of both signs, "p" between 0 and 1, "n" large."""
    kinds: dict[str, dict[str, Any]] = {
        "x": {"signs": True},
        "p": {"low": 0.1, "high": 0.9},
        "n": {"low": 2.0, "high": 4.0},
    }
    return lambda make: [tuple(make(*shape, **kinds[name]) for name in names) for shape in shapes]


def _scores(make: Make) -> list[tuple[Tensor, ...]]:
    return [(make(4, 3, signs=True),), (make(4, 3, low=3.0, high=9.0),)]


def _linear(make: Make) -> list[tuple[Tensor, ...]]:
    return [(make(4, 2, signs=True), make(3, 2, signs=True), make(3))]


def _linear_cross_entropy(options: LinearCrossEntropyOptions | None = None) -> Callable[..., Tensor]:
    return lambda x, weight, bias: F.linear_cross_entropy(x, weight, CLASSES, linear_bias=bias, options=options)


def _check(name: str, function: Callable[..., Any], samples: Samples, **options: Any) -> OpCheck:
    return OpCheck(name, partial(function, **options), samples)


def _of_target(function: Callable[..., Tensor], target: Tensor) -> Callable[..., Tensor]:
    return lambda x, **options: function(x, target, **options)


def _triples(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda a, p, n: function(a, p, n, reduction="none")


EXEMPT = {"grid_sampler": "calls grid_sampler_2d or grid_sampler_3d, which are checked"}
CHECKS = [
    _check("mse_loss", F.mse_loss, _like("x", "x"), reduction="sum"),
    _check("l1_loss", F.l1_loss, _like("p", "n"), reduction="none"),
    _check("smooth_l1_loss", F.smooth_l1_loss, _like("p", "n"), reduction="sum", beta=0.5),
    _check("huber_loss", F.huber_loss, _like("p", "p"), reduction="none", delta=2.0),
    _check("kl_div", F.kl_div, _like("x", "p"), reduction="sum"),
    _check("kl_div:log_target", F.kl_div, _like("x", "x"), reduction="none", log_target=True),
    _check("poisson_nll_loss", F.poisson_nll_loss, _like("x", "n"), reduction="none", full=True),
    _check("poisson_nll_loss:rates", F.poisson_nll_loss, _like("p", "n"), reduction="sum", log_input=False),
    _check("gaussian_nll_loss", F.gaussian_nll_loss, _like("x", "x", "p"), reduction="none", full=True),
    _check("binary_cross_entropy", F.binary_cross_entropy, _like("p", "p"), reduction="none"),
    _check("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, _like("x", "p"), reduction="sum"),
    _check("cross_entropy", _of_target(F.cross_entropy, CLASSES), _scores),
    _check("cross_entropy:none", _of_target(F.cross_entropy, CLASSES), _scores, ignore_index=2, reduction="none"),
    _check("cross_entropy:smooth", _of_target(F.cross_entropy, CLASSES), _scores, label_smoothing=0.2),
    OpCheck(
        "cross_entropy:soft",
        F.cross_entropy,
        _like("x", "p", shapes=((4, 3), (2, 3, 2), (3,))),
        dtypes=("float16", "float32", "float64"),
    ),
    OpCheck("linear_cross_entropy", _linear_cross_entropy(), _linear),
    OpCheck(
        "linear_cross_entropy:chunks", _linear_cross_entropy(LinearCrossEntropyOptions(batch_chunk_size=3)), _linear
    ),
    _check("nll_loss", _of_target(F.nll_loss, CLASSES), _scores),
    _check("multi_margin_loss", _of_target(F.multi_margin_loss, CLASSES), _scores, p=2, margin=9.0),
    _check("multilabel_margin_loss", _of_target(F.multilabel_margin_loss, tensor([[0, 2, -1]] * 4)), _scores),
    _check("multilabel_soft_margin_loss", F.multilabel_soft_margin_loss, _like("x", "p", shapes=((4, 3), (2, 1, 3)))),
    _check("soft_margin_loss", F.soft_margin_loss, _like("x", "x"), reduction="none"),
    _check("hinge_embedding_loss", _of_target(F.hinge_embedding_loss, SIGNS), lambda m: [(m(4),)], margin=3.0),
    _check("margin_ranking_loss", F.margin_ranking_loss, _like("p", "p", "n"), margin=9.0, reduction="none"),
    _check(
        "cosine_embedding_loss",
        lambda a, b: F.cosine_embedding_loss(a, b, SIGNS, margin=-2.0),
        _like("x", "x", shapes=((4, 3),)),
    ),
    _check("triplet_margin_loss", _triples(partial(F.triplet_margin_loss, margin=99.0)), _like("x", "p", "n")),
    _check(
        "triplet_margin_with_distance_loss",
        _triples(partial(F.triplet_margin_with_distance_loss, margin=99.0)),
        _like("x", "p", "n", shapes=((4, 3),)),
    ),
    OpCheck(
        "ctc_loss",
        lambda x: F.ctc_loss(F.log_softmax(x, 2), tensor([[1, 2], [2, 2]]), [4, 3], [2, 2]),
        lambda make: [(make(4, 2, 3),)],
        orders=1,
        dtypes=("float32", "float64"),
    ),
    _check("cosine_similarity", F.cosine_similarity, _like("x", "n", shapes=((4, 3), (2, 3, 2)))),
    _check("pairwise_distance", F.pairwise_distance, _like("p", "n", shapes=((4, 3), (3,)))),
    _check("pairwise_distance:3", F.pairwise_distance, _like("p", "n", shapes=((4, 3),)), p=3.0, keepdim=True),
    _check("normalize", F.normalize, _like("n", shapes=((4, 3), (1, 2, 2)))),
    _check("bilinear", F.bilinear, lambda make: [(make(2, 3), make(2, 2), make(2, 3, 2), make(2))]),
    _check("pixel_shuffle", F.pixel_shuffle, lambda make: [(make(1, 4, 1, 2),), (make(8, 1, 1),)], upscale_factor=2),
    _check("pixel_unshuffle", F.pixel_unshuffle, lambda make: [(make(1, 1, 2, 4),)], downscale_factor=2),
    _check("channel_shuffle", F.channel_shuffle, lambda make: [(make(1, 6, 2),)], groups=2),
    _check("affine_grid", F.affine_grid, lambda make: [(make(1, 2, 3),)], size=(1, 1, 2, 3), align_corners=False),
    _check(
        "grid_sampler_2d",
        grid_sampler_2d,
        lambda make: [(make(1, 2, 3, 3), make(1, 2, 2, 2, low=0.1, high=0.3, signs=True))],
        interpolation_mode=2,
        padding_mode=1,
        align_corners=True,
    ),
    _check(
        "grid_sampler_3d",
        grid_sampler_3d,
        lambda make: [(make(1, 1, 3, 3, 3), make(1, 2, 1, 2, 3, low=0.1, high=0.3, signs=True))],
        interpolation_mode=0,
        padding_mode=0,
        align_corners=False,
    ),
    _check(
        "grid_sample",
        F.grid_sample,
        lambda make: [(make(1, 2, 3, 3), make(1, 2, 2, 2, low=0.1, high=0.3, signs=True))],
        align_corners=False,
    ),
]
