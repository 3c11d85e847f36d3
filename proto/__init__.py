"""Schemas of control messages, handshake and rendezvous, one a layer, and the code generated from them."""
