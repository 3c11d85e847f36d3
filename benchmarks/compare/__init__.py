"""The same three programs in six libraries: a remote call, a parameter server, a worker that dies.

``python -m telegrad.benchmarks.comparison`` runs them, and writes the tables of ``docs/comparison.md``. Each is written as
users of its library write, and prints one line of JSON. ``mesh_*.py`` belong to ``../meshes.py``.
"""
