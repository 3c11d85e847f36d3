"""Benchmarks beside a peer: ``python -m telegrad.benchmarks.rpc`` measures RPC of Telegrad and of PyTorch in one run."""
