"""Links to the other workers: their connections, made again when they break."""
