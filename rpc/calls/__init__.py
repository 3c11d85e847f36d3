"""Calls: the caller's side and the callee's side."""
