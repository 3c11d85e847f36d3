"""``im2col`` and ``col2im``: what a sliding window sees, as columns, and the sum of columns as an image."""

from __future__ import annotations

import math

from ..operation import operation
from ..tensors import Tensor
from .shape.reshaping import reshape, squeeze, unsqueeze
from .sliding import Ints, Sliding, gathered, per_dim, spread
from .sliding_arguments import batched, slide
from .table.linear_map import LinearMap

__all__ = ["col2im", "im2col"]
METHODS = ()

_UNFOLD = LinearMap("unfold", gathered, lambda g, shape, sliding: spread(g, sliding))
_FOLD = LinearMap("fold", spread, lambda g, shape, sliding: gathered(g, sliding))


@operation
def im2col(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The patches that a window sees, as columns: from (N, C, H, W) or (C, H, W) to (N, C * KH * KW, stops).

    Raises:
        ValueError: the window is larger than the padded input, or the input has another number of dimensions.
    """
    x = batched(input, 2)
    sliding = _sliding(x.shape[2:], kernel_size, dilation, padding, stride)
    windows = _UNFOLD(x, sliding)
    columns = reshape(windows, (len(x), x.shape[1] * math.prod(sliding.kernel), math.prod(sliding.stops)))
    return columns if input.ndim == 4 else squeeze(columns, 0)


@operation
def col2im(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Add up patches, given as columns, to an image: the transpose of ``im2col``.

    Args:
        input: shape (N, C * KH * KW, stops) or without N.
        output_size: H and W.
        kernel_size, dilation, padding, stride: as those of ``im2col``.

    Raises:
        ValueError: the input has not as many rows or columns as the other arguments say.
    """
    sliding = _sliding(per_dim("output_size", output_size, 2), kernel_size, dilation, padding, stride)
    stops, depth = math.prod(sliding.stops), math.prod(sliding.kernel)
    if input.ndim not in (2, 3) or input.shape[-1] != stops or input.shape[-2] % depth:
        raise ValueError(f"the input must have shape (N, C * {depth}, {stops}), not {input.shape}")
    columns = input if input.ndim == 3 else unsqueeze(input, 0)
    seen = reshape(columns, (len(columns), columns.shape[1] // depth, *sliding.kernel, *sliding.stops))
    image = _FOLD(seen, sliding)
    return image if input.ndim == 3 else squeeze(image, 0)


def _sliding(lengths: tuple[int, ...], kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Sliding:
    given = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
    return slide(lengths, *(per_dim(name, value, 2) for name, value in given.items()))
