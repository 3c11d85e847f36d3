"""Encoding of messages as frames of bytes, and decoding."""
