"""Reductions: sums, extremes, statistics, running sums, sorting, softmax, losses."""
