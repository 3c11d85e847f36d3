"""Random trainings of meshes of references with a ``DistributedOptimizer``."""
