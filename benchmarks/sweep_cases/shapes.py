"""Operations that move or choose elements."""

from __future__ import annotations

from .base import case, cases, indices, normal

MATRIX = normal(256, 256)

CASES = (
    *cases(
        (MATRIX,),
        {
            "reshape": lambda lib, x: x.reshape(-1),
            "transpose, contiguous": lambda lib, x: x.t().contiguous(),
            "permute, contiguous": lambda lib, x: x.reshape(16, 16, 256).permute(2, 0, 1).contiguous(),
            "expand, clone": lambda lib, x: x.unsqueeze(0).expand(4, 256, 256).clone(),
            "slice": lambda lib, x: x[16:-16, ::2],
            "flip": lambda lib, x: lib.flip(x, (0, 1)),
            "roll": lambda lib, x: lib.roll(x, 7, 1),
            "tril": lambda lib, x: lib.tril(x),
            "diagonal": lambda lib, x: x.diagonal(),
            "repeat": lambda lib, x: x.repeat(2, 2),
            "repeat_interleave": lambda lib, x: x.repeat_interleave(2, 0),
            "pad": lambda lib, x: lib.nn.functional.pad(x, (2, 2, 2, 2)),
            "unfold": lambda lib, x: x.unfold(1, 16, 8),
            "split, cat": lambda lib, x: lib.cat(x.split(64), 1),
            "masked_select": lambda lib, x: x[x > 0],
            "nonzero": lambda lib, x: lib.nonzero(x > 0),
        },
    ),
    *cases(
        (MATRIX, normal(256, 256)),
        {
            "cat": lambda lib, x, y: lib.cat([x, y]),
            "stack": lambda lib, x, y: lib.stack([x, y]),
        },
    ),
    *cases(
        (MATRIX, indices(256, 128)),
        {
            "index_select": lambda lib, x, rows: lib.index_select(x, 0, rows),
            "index by rows": lambda lib, x, rows: x[rows],
            "index_add": lambda lib, x, rows: lib.index_add(x, 0, rows, x[:128].detach()),
        },
    ),
    *cases(
        (MATRIX, indices(256, 256, 64)),
        {
            "gather": lambda lib, x, index: lib.gather(x, 1, index),
            "scatter_add": lambda lib, x, index: lib.scatter_add(x, 1, index, x.detach()[:, :64]),
            "take_along_dim": lambda lib, x, index: lib.take_along_dim(x, index, 1),
        },
    ),
    case(
        "embedding",
        lambda lib, x, index: lib.nn.functional.embedding(index, x),
        normal(1000, 64),
        indices(1000, 32, 20),
    ),
    case("one_hot", lambda lib, index: lib.nn.functional.one_hot(index, 100), indices(100, 1024)),
    case("bincount", lambda lib, index: lib.bincount(index), indices(100, 4096)),
)
