"""Benchmarks beside other libraries: ``python -m telegrad.benchmarks.rpc`` measures RPC of all of them in one run."""
