"""The schema of handshake, rendezvous and control messages, and the code generated from it."""
