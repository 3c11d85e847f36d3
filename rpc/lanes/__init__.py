"""Lanes, on which frames travel between workers: one file for each transport; base.py is their interface."""

from ..threads.forking import load_grpc

load_grpc()  # before any module of the package imports it
