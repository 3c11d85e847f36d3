"""Random nested objects with arrays of every library: they arrive equal, of the same kind, and as shared as they were."""
