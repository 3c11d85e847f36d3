"""Checks of every operation that ships, one module a family; ``python -m telegrad.tools.ops`` runs them and prints a table."""
