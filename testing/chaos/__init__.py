"""Chaos on real processes: workers joined by relays run a workload while links and processes are broken by seed.

``python -m telegrad.testing.chaos --help``. `faults.py` has what is done to them, `workload.py` what they do, `checks.py`
what must hold, `round.py` the order of it all.
"""
