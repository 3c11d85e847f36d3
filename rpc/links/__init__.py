"""Links to the other workers: their sessions, made again when they break."""
