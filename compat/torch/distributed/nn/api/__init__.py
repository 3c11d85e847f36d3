"""Package of the module in which ``torch.distributed.nn`` defines ``RemoteModule``."""
