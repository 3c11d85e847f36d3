"""Observation of workers: one read-only request, and its answer as typed records."""
