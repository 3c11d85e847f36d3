"""Checks on 0-d and on empty tensors, for operations whose other samples include neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import core as tg
from ...core import Tensor
from ...nn import functional as F
from ...testing.ops import OpCheck, Samples
from .linalg import shapes

la = tg.linalg
INEXACT = ("float32", "float64")
# Of a gradient without elements only the shape is checked; results are nan where PyTorch's are.
EMPTY: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    **{name: (getattr(tg, name), ((0,),)) for name in ("mean", "nanmean", "var", "std", "msort", "diagflat")},
    **{name: (getattr(la, name), ((0, 3),)) for name in ("svdvals", "pinv", "matrix_norm", "matrix_rank")},
    **{name: (getattr(F, name), ((0, 3), (0, 3))) for name in ("cosine_similarity", "pairwise_distance")},
    "linalg_norm": (la.norm, ((0, 3),)),
    "vdot": (tg.vdot, ((0,), (0,))),
    "inner": (tg.inner, ((2, 0), (3, 0))),
    "ger": (tg.ger, ((0,), (2,))),
    "linear": (tg.linear, ((2, 1, 0), (3, 0), (3,))),
    "addmm": (tg.addmm, ((2, 3), (2, 0), (0, 3))),
    "baddbmm": (tg.baddbmm, ((1,), (0, 2, 3), (0, 3, 2))),
    "addbmm": (tg.addbmm, ((2, 2), (0, 2, 3), (0, 3, 2))),
    "addmv": (tg.addmv, ((2,), (2, 0), (0,))),
    "addr": (tg.addr, ((0, 3), (0,), (3,))),
    "tensordot": (lambda a, b: tg.tensordot(a, b, 1), ((0, 3), (3, 2))),
    "multi_dot": (lambda *args: la.multi_dot(args), ((2, 0), (0, 3), (3, 2))),
    "solve": (la.solve, ((0, 0), (0, 2))),
    "linalg_qr": (lambda a: tuple(la.qr(a)), ((0, 3),)),
    "cross": (lambda a, b: tg.cross(a, b, 1), ((0, 3), (0, 3))),
    "vecdot": (la.vecdot, ((2, 0), (2, 0))),
    "logsumexp": (lambda a: tg.logsumexp(a, 1), ((2, 0),)),
    "amax": (lambda a: tg.amax(a, 1), ((0, 3),)),
    "amin": (lambda a: tg.amin(a, 1), ((0, 3),)),
    "max": (lambda a: tg.max(a, 1)[0], ((0, 3),)),
    "min": (lambda a: tg.min(a, 1)[0], ((0, 3),)),
    "cummax": (lambda a: tg.cummax(a, 0)[0], ((0, 3),)),
    "cummin": (lambda a: tg.cummin(a, 0)[0], ((0, 3),)),
    "sort": (lambda a: tg.sort(a)[0], ((0, 3),)),
    "topk": (lambda a: tg.topk(a, 2)[0], ((0, 3),)),
    "kthvalue": (lambda a: tg.kthvalue(a, 1)[0], ((0, 3),)),
    "median": (lambda a: tg.median(a, 1)[0], ((0, 3),)),
    "mode": (lambda a: tg.mode(a, 1)[0], ((0, 3),)),
    "dist": (tg.dist, ((0,), (0,))),
    "diagonal": (tg.diagonal, ((0, 3),)),
    "normalize": (F.normalize, ((2, 0),)),
    "bilinear": (F.bilinear, ((0, 3), (0, 3), (2, 3, 3))),
    "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), ((0, 4, 2, 2),)),
    "channel_shuffle": (lambda a: F.channel_shuffle(a, 2), ((0, 4, 2, 2),)),
    "rms_norm": (lambda a: F.rms_norm(a, (3,)), ((0, 3),)),
    "group_norm": (lambda a: F.group_norm(a, 2), ((0, 4, 3),)),
    "local_response_norm": (lambda a: F.local_response_norm(a, 2), ((0, 2, 3),)),
    "conv2d": (F.conv2d, ((0, 2, 4, 4), (3, 2, 2, 2), (3,))),
    "conv3d": (F.conv3d, ((0, 2, 4, 4, 4), (3, 2, 2, 2, 2))),
    "conv_transpose1d": (F.conv_transpose1d, ((0, 2, 4), (2, 3, 2))),
    "conv_transpose2d": (F.conv_transpose2d, ((0, 2, 4, 4), (2, 3, 2, 2))),
    "im2col": (lambda a: F.unfold(a, 2), ((0, 2, 4, 4),)),
    "col2im": (lambda a: F.fold(a, (4, 4), 2), ((0, 8, 9),)),
    "avg_pool2d": (lambda a: F.avg_pool2d(a, 2), ((0, 2, 4, 4),)),
    "max_pool2d": (lambda a: F.max_pool2d(a, 2), ((0, 2, 4, 4),)),
    "max_pool3d": (lambda a: F.max_pool3d(a, 2), ((0, 2, 4, 4, 4),)),
    "lp_pool2d": (lambda a: F.lp_pool2d(a, 2, 2), ((0, 2, 4, 4),)),
    "adaptive_avg_pool2d": (lambda a: F.adaptive_avg_pool2d(a, 2), ((0, 2, 4, 4),)),
    "adaptive_max_pool2d": (lambda a: F.adaptive_max_pool2d(a, 2), ((0, 2, 4, 4),)),
    "multilabel_soft_margin_loss": (
        lambda a, b: F.multilabel_soft_margin_loss(a, b.detach(), reduction="sum"),
        ((0, 3), (0, 3)),
    ),
    "cross_entropy": (
        lambda a: F.cross_entropy(a, tg.zeros(0, dtype="int64"), reduction="sum"),
        ((0, 3),),
    ),
}


def _over_first_dim(name: str, **options: Any) -> Callable[[Tensor], Any]:
    return lambda a: getattr(tg, name)(a, 0, **options)


LINES = ("nansum", "mean", "nanmean", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp")
POINTS: dict[str, Callable[[Tensor], Any]] = {
    **{name: _over_first_dim(name) for name in LINES},
    **{name: _over_first_dim(name, correction=0) for name in ("std", "var", "std_mean", "var_mean")},
    "dist": lambda a: tg.dist(a, a * a),
    "flip": lambda a: tg.flip(a, (0,)),
    "permute": lambda a: tg.permute(a, ()),
    "movedim": lambda a: tg.movedim(a, (), ()),
    "unfold": lambda a: a.unfold(0, 1, 1),
    "as_strided": lambda a: tg.as_strided(a, (2,), (0,)),
    "view_as": lambda a: a.view_as(tg.ones(1)),
    "reshape_as": lambda a: a.reshape_as(tg.ones(1, 1)),
    "scatter_add": lambda a: tg.scatter_add(a, 0, tg.tensor(0), a * a),
    "scatter_reduce": lambda a: tg.scatter_reduce(a, 0, tg.tensor(0), a * a, "sum"),
    "linalg_norm": la.norm,
    "cosine_similarity": lambda a: F.cosine_similarity(a, a * a + 1, dim=0),
    "pairwise_distance": lambda a: F.pairwise_distance(a, a * a),
    "normalize": lambda a: F.normalize(a, p=1.0, dim=0),
    "hinge_embedding_loss": lambda a: F.hinge_embedding_loss(a, tg.ones((), dtype=a.dtype)),
}


def point() -> Samples:
    """Return samples of one 0-d tensor."""
    return lambda make: [(make(low=0.6),)]


CHECKS = [
    *(OpCheck(f"{name}:empty", function, shapes(each), dtypes=INEXACT) for name, (function, each) in EMPTY.items()),
    *(OpCheck(f"{name}:0-d", function, point(), dtypes=INEXACT) for name, function in POINTS.items()),
]
