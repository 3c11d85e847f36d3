"""How frames travel between workers: one file per transport, one seam (base.py)."""

from .forking import load_grpc

load_grpc()  # before any module of the package imports it
