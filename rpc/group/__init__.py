"""Waits of several workers for one another, and the end of a job."""
