"""Programs to run and to read: tours of RPC and references, a parameter server, and training in one process."""
