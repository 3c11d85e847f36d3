"""Trainings that ``chaos --restarts`` disturbs: each worker runs one as a script."""
