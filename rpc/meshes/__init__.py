"""Calls to many workers at once, over a tree of workers."""
