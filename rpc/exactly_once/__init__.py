"""Calls whose effect counts once, also if the callee or the caller dies and goes on from a checkpoint."""
