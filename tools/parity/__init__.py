"""Comparison with PyTorch: its own databases of operators, modules and optimizers, run by both libraries.

``python -m telegrad.tools.parity --peer PYTHON``, where PYTHON has torch (and ``expecttest``, ``hypothesis``,
``scipy``, which torch's databases import).

``peer/`` runs in that interpreter: it draws samples, computes what is expected and writes cases. ``replay`` repeats a
case with this library, ``compare`` judges it, ``report`` prints the table.
"""
