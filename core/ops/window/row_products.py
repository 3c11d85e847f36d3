"""The three products of convolution on small images, by their rows: those of ``products``, without copies of patches.

Elements of a column of the window, and the rows that they see, are one product (see ``ImageRows``). The products of the columns
are added up. Nothing is multiplied by padding: of a 3x3 window on images of 2x2 that would be more than half of the work.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...types import Array, DType
from .image_rows import ImageRows, columns, runs
from .window import Window


def convolve(image: Array, weights: Array, window: Window, groups: int, bias: Array | None, out: Array) -> None:
    """Write the output to ``out``: the weight times the pixels that it sees, plus the bias.

    Args:
        image: shape (N, C, *input_size).
        weights: from ``row_weights``.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (O,).
        out: shape (N, O, *output_size).
    """
    dtype = weights.dtype
    rows, outputs = _seen_rows(image, window, groups, dtype), ImageRows.new(out.shape, groups, dtype, image)
    results = _by_row(outputs, window)
    for stop, seen in enumerate(runs(window)):
        target = results[:, stop]
        pairs = list(itertools.product(columns(window), seen))
        if pairs and pairs[0][0].stops == window.output_size[-1]:  # at each stop of the row
            column, run = pairs.pop(0)
            np.matmul(
                weights[:, column.number, :, rows.channels(run.element, run.height)], rows.seen(run, column), out=target
            )
        else:
            target[...] = 0
        for column, run in pairs:
            part = target[..., rows.stops(column)]
            factor = weights[:, column.number, :, rows.channels(run.element, run.height)]
            np.add(part, np.matmul(factor, rows.seen(run, column)), out=part)
    if bias is not None:
        results += bias.reshape(groups, 1, len(bias) // groups, 1)
    outputs.write(out, groups)


def convolve_image(output: Array, weights: Array, window: Window, groups: int, bias: Array | None, out: Array) -> None:
    """Write the image to ``out``: for each pixel the sum, over the stops that see it, of output times weight; plus the bias.

    Args:
        output: shape (N, O, *output_size).
        weights: from ``row_weights.factors``.
        window: slides over the image.
        groups: number of groups of channels.
        bias: shape (C,).
        out: shape (N, C, *input_size).
    """
    dtype = weights.dtype
    given = _by_row(ImageRows.of(output, groups, dtype), window)
    rows = ImageRows.new(out.shape, groups, dtype, output, window.stride[-1])
    for each in rows.arrays.values():
        each[...] = 0
    for stop, seen in enumerate(runs(window)):
        for column, run in itertools.product(columns(window), seen):
            factor = weights[:, column.number, :, rows.channels(run.element, run.height)].swapaxes(-1, -2)
            part = rows.seen(run, column)
            np.add(part, np.matmul(factor, given[:, stop][..., rows.stops(column)]), out=part)
    rows.write(out, groups)
    if bias is not None:
        out += bias.reshape(len(bias), *(1,) * len(window.input_size))


def convolve_weight(
    output: Array, image: Array, window: Window, groups: int, results: Array, fresh: set[tuple[int, int]]
) -> None:
    """Add the products of the output with the pixels that each element of the window sees to ``results``.

    Args:
        output: shape (N, O, *output_size).
        image: shape (N, C, *input_size).
        window: slides over the image.
        groups: number of groups of channels.
        results: from ``row_weights.new_factors``.
        fresh: elements, by column and number, that have no product yet and are 0; they are taken out.
    """
    rows = _seen_rows(image, window, groups, results.dtype)
    given = _by_row(ImageRows.of(output, groups, results.dtype), window)
    for stop, seen in enumerate(runs(window)):
        for column, run in itertools.product(columns(window), seen):
            part = results[:, column.number, :, rows.channels(run.element, run.height)]
            factors = given[:, stop][..., rows.stops(column)], rows.seen(run, column).swapaxes(-1, -2)
            elements = {(column.number, run.element + number) for number in range(run.height)}
            if elements <= fresh:
                np.matmul(*factors, out=part)
            else:
                np.add(part, np.matmul(*factors), out=part)
            fresh -= elements


def _seen_rows(image: Array, window: Window, groups: int, dtype: DType) -> ImageRows:
    phases = (column.phase for column in columns(window))
    return ImageRows.of(image, groups, dtype, window.stride[-1], phases)


def _by_row(outputs: ImageRows, window: Window) -> Array:
    """Return outputs as (groups, rows of stops, channels of a group, stops * samples)."""
    (array,) = outputs.arrays.values()
    height = math.prod(window.output_size[:-1])
    return array.reshape(len(array), height, array.shape[1] // height, array.shape[2])
