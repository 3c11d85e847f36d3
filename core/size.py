"""``Size``: the shape of a tensor."""

from __future__ import annotations

import math
from typing import SupportsIndex, overload


class Size(tuple[int, ...]):
    """Lengths of a tensor's dimensions: a tuple that can count the elements. Slices of it are sizes too.

    >>> Size((2, 3, 4))[1:].numel()
    12
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | Size:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(found, tuple) else found
