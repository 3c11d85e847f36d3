"""Indexing: subscripts, gather and scatter, masks."""
