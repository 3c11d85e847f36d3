"""Large frames on the sockets of a connection: through shared segments on one host, else straight into the final arrays."""
