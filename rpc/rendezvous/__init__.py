"""Rendezvous: workers find one another."""
