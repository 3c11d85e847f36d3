"""Constants that ``torch`` has beside its functions."""

import math

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "e",
    "inf",
    "nan",
    "newaxis",
    "pi",
    "preserve_format",
    "sparse_coo",
    "strided",
]

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None

# Memory formats are accepted, and every tensor is in row-major order.
channels_last = "channels_last"
channels_last_3d = "channels_last_3d"
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"

# Layouts.
sparse_coo = "sparse_coo"
strided = "strided"
