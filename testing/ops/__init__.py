"""Check of an operation of your own: values, numeric gradients, shapes, memory layouts and dtypes.

``report(OpCheck(...))`` runs it. Those of the operations that ship are in ``tools/ops``.
"""

from .check import Make, OpCheck, OpReport, Samples, report
from .samples import PAIRS, SHAPES, binary, unary

__all__ = ["PAIRS", "SHAPES", "Make", "OpCheck", "OpReport", "Samples", "binary", "report", "unary"]
