"""Numbers with names, as ``torch`` has them beside its functions."""

import math

__all__ = ["Size", "e", "inf", "nan", "newaxis", "pi"]

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None
Size: type[tuple[int, ...]] = tuple  # shapes are tuples
