"""Proof that both ends of a connection belong to the job."""
