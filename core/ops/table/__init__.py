"""Modules that all operations share: gradient rules and nodes, declarations, factories, in-place forms, views."""
