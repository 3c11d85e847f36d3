"""Restarts of workers that fail: the rules, their limits, and the state of those that are being ended and started again."""
