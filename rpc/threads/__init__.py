"""Threads of an agent, and the time by which they act."""
