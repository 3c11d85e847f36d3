"""Large frames on the sockets of a session: through shared segments on one host, else straight into the final arrays."""
