"""Records indexing, gathering and scattering, for tests/core/test_expressions_golden.py."""

from expressions import case, record

C, M = (2, 3, 4), (3, 4)
MASK = "b([[True, False, True, False], [False, False, True, True], [True, True, False, False]])"
PLACES = "i([[0, 1, 1, 0, 2], [3, 0, 2, 1, 1]])"


def written(assignment):
    """The tensor after an assignment into a copy of it, ``c``; also through a view that was there before."""
    return f"(lambda c: (lambda view: ({assignment}, c, view)[1:])(c[0]))(x.clone())"


READS = ["0", "-1", "1:", ":, ::2", "..., 1", "None, 1", "[0, 1, 1]", "i([[0], [1]])", ":, [0, 2], [1, 1]", "[0, 1], :, [1, 3]",
         "0, :, [1, 2]", ":, [0, 1], 2", "..., [0, 3], None", "i(1), 0", "True", "False", "x > 0", "b([True, False])",
         ":, b([True, False, True])", "[1], b([True, False, True])", "[[0, 1], [1, 0]]", "range(2)", "[]", "1, 2, 3",
         "i(1)", "b([False, True]), 1:", "..., [-1, -4]"]  # fmt: skip

CASES = [
    *(case(f"x[{index}]", C) for index in READS),
    case(written("c.__setitem__(0, y)"), C, (4,)),
    case(written("c.__setitem__((slice(None), [0, 2]), y)"), C, (2, 1, 4)),
    case(written("c.__setitem__((0, slice(None), [1, 2]), y)"), C, (3, 1)),
    case(written("c.__setitem__(c > 0, y)"), C, ()),
    case(written("c.__setitem__((..., 1), 5.0)"), C),
    case(written("c.index_put_((i([0, 1]), i([1, 1])), y)"), C, (2, 4)),
    case(written("c.index_put_((i([0, 0]), i([1, 1])), y, accumulate=True)"), C, (2, 4)),
    case(written("c.masked_fill_(c > 0.3, 2.0)"), C),
    case(written("c[1].mul_(y)"), C, ()),
    case(written("c.select(1, 0).zero_()"), C),
    case("tg.index_put(x, (i([0, 1]),), y)", C, (4,)),
    case("tg.gather(x, 1, i([[0, 3], [1, 1], [2, 2]]))", M),
    case("tg.gather(x, 0, i([[0, 2, 1, 0]]))", M),
    case("tg.take_along_dim(x, i([[0, 3, 1]]), 1)", M),
    case("tg.take_along_dim(x, i([5, 11, 0]))", M),
    case("tg.take(x, i([[5, 11], [0, -1]]))", M),
    case("tg.put(x, i([5, 0]), y)", M, (2,)),
    case("tg.put(x, i([5, 5, 0]), y, accumulate=True)", M, (3,)),
    case("tg.scatter(x, 1, i([[0, 3], [2, 1], [1, 2]]), y)", M, (3, 2)),
    case("tg.scatter(x, 1, i([[0, 3], [2, 1]]), 1.5)", M),
    case("tg.scatter(x.detach(), 1, i([[0, 3], [2, 2]]), y.detach(), reduce='add')", M, (2, 2)),
    case(f"tg.scatter_add(x, 1, {PLACES}, y)", (2, 4), (2, 5)),
    case(f"x.clone().scatter_add_(1, {PLACES}, y)", (2, 4), (2, 5)),
    *(
        case(f"tg.scatter_reduce(x, 1, {PLACES}, y, '{reduce}', include_self={alone})", (2, 4), (2, 5))
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for alone in (True, False)
    ),
    case("tg.index_select(x, 1, i([0, 3, 3]))", M),
    case("tg.index_add(x, 0, i([2, 0, 2]), y, alpha=2)", M, M),
    case("tg.index_copy(x, 1, i([2, 0]), y)", M, (3, 2)),
    case("tg.index_fill(x, 1, i([2, 0]), 3.0)", M),
    case("tg.nn.functional.embedding(i([[0, 2], [2, 2]]), x)", M),
    case(f"tg.where({MASK}, x, y)", M, (4,)),
    case(f"tg.where({MASK}, x, 2.0)", M),
    case(f"tg.masked_fill(x, {MASK}, y)", M, ()),
    case(f"tg.masked_select(x, {MASK})", M),
    case(f"tg.masked_scatter(x, {MASK}, y)", M, (8,)),
    case(f"tg.nonzero({MASK})"),
    case(f"tg.nonzero({MASK}, as_tuple=True)"),
    case(f"tg.argwhere({MASK})"),
    case(f"tg.where({MASK})"),
]


def recorded():
    return {"indexing": record(CASES)}
