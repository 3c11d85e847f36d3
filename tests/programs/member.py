"""Worker of a dynamic group: joins, says so, and leaves when its input ends. Arguments: init method, name, rank."""

import sys

from telegrad import rpc

address, name, rank = sys.argv[1:]
rpc.init_rpc(name, rank=int(rank), world_size=0, rpc_backend_options=rpc.GrpcRpcBackendOptions(init_method=address))
print("joined", flush=True)
sys.stdin.read()
rpc.shutdown()
