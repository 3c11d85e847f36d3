"""Machinery that all operations share: gradient rules and nodes, factories, in-place forms, views."""
