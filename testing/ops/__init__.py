"""Checks of every operation: values, numeric gradients, shapes, memory layouts and dtypes.

``python -m telegrad.testing.ops`` prints the list. To check an operation of your own: ``report(OpCheck(...))``.
"""

from .check import Make, OpCheck, OpReport, report
from .samples import PAIRS, SHAPES, binary, unary

__all__ = ["PAIRS", "SHAPES", "Make", "OpCheck", "OpReport", "binary", "report", "unary"]
