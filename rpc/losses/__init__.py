"""Losses: which workers the job counts as lost, decided by all workers alike."""
