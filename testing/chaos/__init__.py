"""Chaos on real processes: workers run a workload over relays, while faults chosen by seed break links and processes.

``python -m telegrad.testing.chaos --help``. `faults.py` has the faults, `workload.py` the workers' activities, `checks.py`
what must hold, and `round.py` runs one round of them.
"""
