"""Calls that are sent again after a worker was lost."""
