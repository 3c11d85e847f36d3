"""Pointwise operations: arithmetic, comparison, rounding, exponentials, conversions."""
