"""Engines carry a supervisor's instructions out: with processes on this machine (`local`)."""
