"""Benchmarks beside a peer: ``python -m telegrad.benchmarks.rpc`` measures our RPC and PyTorch's in one run."""
