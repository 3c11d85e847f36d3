"""How frames travel between workers: one file per transport, one seam (base.py)."""
