"""Checkpoints damaged or made to do harm, by seed: ``python -m telegrad.tools.checkpoints``."""
