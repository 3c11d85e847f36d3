"""Signatures of functions and methods for type checkers only, written by ``write.py`` from the registry of operations."""
