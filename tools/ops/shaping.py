"""Checks of reshaping, reordering and expanding dimensions."""

from __future__ import annotations

import numpy as np

from ... import core as tg
from ...core import Tensor
from ...testing.ops import Make, OpCheck, Samples, unary


def of(*shapes: tuple[int, ...], requires_grad: bool = True) -> Samples:
    """Return samples of one tensor for each of ``shapes``."""
    return lambda make: [(make(*shape, requires_grad=requires_grad),) for shape in shapes]


def matrices(make: Make) -> list[tuple[Tensor]]:
    """Return samples of one tensor with at least two dimensions."""
    return [(make(*shape),) for shape in ((2, 3), (3, 3), (0, 2), (2, 1, 4), (1, 0, 2, 2))]


CHECKS = [
    OpCheck("reshape", lambda a: a.reshape(-1, 2), of((2, 3), (4,), (1, 2, 1)), reference=lambda a: a.reshape(-1, 2)),
    OpCheck("reshape:all", lambda a: a.reshape(a.shape[::-1]), unary(), reference=lambda a: a.reshape(a.shape[::-1])),
    OpCheck("view", lambda a: a.contiguous().view(a.numel()), unary(), reference=np.ravel),
    OpCheck("view_as", lambda a: a.contiguous().view_as(tg.ones(3, 2)), of((2, 3), (6,))),
    OpCheck("reshape_as", lambda a: a.reshape_as(tg.ones(3, 2)), of((2, 3), (6,))),
    OpCheck("flatten", tg.flatten, unary(), reference=np.ravel),
    OpCheck("flatten:some", lambda a: tg.flatten(a, 1, -2), of((2, 3, 1, 2), (1, 0, 2, 2))),
    OpCheck("ravel", tg.ravel, unary(), reference=np.ravel),
    OpCheck("unflatten", lambda a: tg.unflatten(a, -1, (2, -1)), of((4,), (3, 6), (0, 2))),
    OpCheck("squeeze", tg.squeeze, unary(), reference=np.squeeze),
    OpCheck("squeeze:dim", lambda a: tg.squeeze(a, (0, -1)), of((1, 5, 1), (2, 1), (3,), (1, 0))),
    OpCheck("unsqueeze", lambda a: tg.unsqueeze(a, -1), unary(), reference=lambda a: a[..., None]),
    OpCheck("contiguous", lambda a: a.contiguous(), unary(), reference=np.array),
    OpCheck(
        "permute", lambda a: a.permute(2, 0, 1), of((2, 3, 4), (1, 0, 2)), reference=lambda a: a.transpose(2, 0, 1)
    ),
    OpCheck(
        "transpose", lambda a: tg.transpose(a, 0, -1), unary(), reference=lambda a: a.swapaxes(0, -1) if a.ndim else a
    ),
    OpCheck("swapaxes", lambda a: tg.swapaxes(a, 0, 1), matrices, reference=lambda a: a.swapaxes(0, 1)),
    OpCheck("swapdims", lambda a: tg.swapdims(a, 0, 1), matrices, reference=lambda a: a.swapaxes(0, 1)),
    OpCheck(
        "movedim",
        lambda a: tg.movedim(a, (0, -1), (2, 0)),
        of((2, 3, 4), (1, 2, 0, 3)),
        reference=lambda a: np.moveaxis(a, (0, -1), (2, 0)),
    ),
    OpCheck("moveaxis", lambda a: tg.moveaxis(a, 0, -1), matrices, reference=lambda a: np.moveaxis(a, 0, -1)),
    OpCheck("t", tg.t, of((2, 3), (3,), (), (0, 2)), reference=np.transpose),
    OpCheck("reversed_dims", lambda a: a.T, unary(), reference=np.transpose),
    OpCheck("matrix_transpose", lambda a: a.mT, matrices, reference=lambda a: a.mT),
    OpCheck("hermitian", lambda a: a.H, of((2, 3), (), (0, 2)), reference=lambda a: a.T.conj()),
    OpCheck("adjoint", tg.adjoint, matrices, reference=lambda a: a.mT.conj()),
    OpCheck("expand", lambda a: a.expand(3, *a.shape), unary(), reference=lambda a: np.stack([a] * 3)),
    OpCheck("expand:ones", lambda a: a.expand(2, -1, 4), of((2, 3, 1), (3, 1), (1, 0, 1))),
    OpCheck("expand_as", lambda a: a.expand_as(tg.ones(2, 3)), of((), (3,), (2, 1), (2, 3))),
    OpCheck("broadcast_to", lambda a: tg.broadcast_to(a, (2, 3)), of((), (3,), (2, 1), (2, 3))),
    OpCheck("broadcast_tensors", tg.broadcast_tensors, lambda make: [(make(2, 1), make(3)), (make(), make(0, 2))]),
    OpCheck(
        "repeat",
        lambda a: a.repeat(2, 1, 3),
        of((2, 3), (), (1, 0, 2), (2, 1, 1)),
        reference=lambda a: np.tile(a, (2, 1, 3)),
    ),
    OpCheck("tile", lambda a: tg.tile(a, (2,)), unary(), reference=lambda a: np.tile(a, 2)),
    OpCheck("repeat_interleave", lambda a: a.repeat_interleave(2), unary(), reference=lambda a: np.repeat(a, 2)),
    OpCheck(
        "repeat_interleave:each",
        lambda a: a.repeat_interleave(tg.tensor([2, 0, 1]), dim=1),
        of((2, 3), (1, 3, 2), (0, 3)),
        reference=lambda a: np.repeat(a, [2, 0, 1], 1),
    ),
    OpCheck(
        "meshgrid",
        lambda a, b: tg.meshgrid(a, b),
        lambda make: [(make(2), make(3)), (make(), make(2)), (make(0), make(1))],
    ),
    OpCheck("meshgrid:xy", lambda a, b: tg.meshgrid(a, b, indexing="xy"), lambda make: [(make(2), make(3))]),
    OpCheck("cartesian_prod", tg.cartesian_prod, lambda make: [(make(2), make(3)), (make(2),), (make(0), make(3))]),
    OpCheck("combinations", tg.combinations, of((4,), (2,), (1,), (0,))),
    OpCheck("combinations:with", lambda a: tg.combinations(a, 3, True), of((3,), (1,))),
    *(
        OpCheck(f"atleast_{n}d", getattr(tg, f"atleast_{n}d"), unary(), reference=getattr(np, f"atleast_{n}d"))
        for n in (1, 2, 3)
    ),
    OpCheck("flip", lambda a: a.flip(0, -1), matrices, reference=lambda a: np.flip(a, (0, -1))),
    OpCheck("fliplr", tg.fliplr, matrices, reference=np.fliplr),
    OpCheck("flipud", tg.flipud, of((3,), (2, 3), (0,)), reference=np.flipud),
    OpCheck("roll", lambda a: tg.roll(a, 2), unary(), reference=lambda a: np.roll(a, 2)),
    OpCheck(
        "roll:dims", lambda a: tg.roll(a, (1, -2), (0, -1)), matrices, reference=lambda a: np.roll(a, (1, -2), (0, -1))
    ),
    *(
        OpCheck(f"rot90:{k}", lambda a, k=k: tg.rot90(a, k), matrices, reference=lambda a, k=k: np.rot90(a, k))
        for k in range(-1, 3)
    ),
    OpCheck("transpose_", lambda a: (a * 1.0).transpose_(0, -1), unary()),
    OpCheck("t_", lambda a: (a * 1.0).t_(), of((2, 3), (3,), ())),
    OpCheck("swapaxes_", lambda a: (a * 1.0).swapaxes_(0, 1), matrices),
    OpCheck("swapdims_", lambda a: (a * 1.0).swapdims_(0, 1), matrices),
    OpCheck("squeeze_", lambda a: (a * 1.0).squeeze_(), unary()),
    OpCheck("unsqueeze_", lambda a: (a * 1.0).unsqueeze_(0), unary()),
    OpCheck("unfold", lambda a: Tensor.unfold(a, -1, 3, 1), of((5,), (2, 4), (0, 3))),
    OpCheck("unfold:steps", lambda a: a.unfold(0, 2, 3), of((7,), (5, 2), (2, 1))),
    OpCheck("as_strided", lambda a: tg.as_strided(a.contiguous(), (2, 2), (1, 2), 1), of((6,), (2, 3))),
    OpCheck("as_strided_", lambda a: (a.contiguous() * 1.0).as_strided_((2, 2), (1, 2), 1), of((6,), (2, 3))),
]
