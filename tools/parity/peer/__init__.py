"""The side that has torch: scripts that import nothing of this package."""
