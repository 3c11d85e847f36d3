"""Worker of an elastic training: begins at a first line of input, prints each step that counts, and leaves when its input ends.

Every fifth step waits until a file of its number is in a folder. Arguments: init method, name, rank, steps, width of the model,
pieces (0 for none), the folder, a seed for the weights.
"""

import hashlib
import sys
import threading
import time
from pathlib import Path

import numpy as np
import telegrad as tg
from telegrad import nn, rpc
from telegrad.collective import ElasticTraining
from telegrad.data import ElasticSampler

SAMPLES, BATCH = 96, 24
GATE_SECONDS = 60

address, name, rank, steps, width, pieces, gates, seed = sys.argv[1:]
rpc.init_rpc(name, rank=int(rank), world_size=0, rpc_backend_options=rpc.GrpcRpcBackendOptions(init_method=address))
random = np.random.default_rng(7)
inputs = random.normal(size=(SAMPLES, 8))
targets = np.sin(inputs).sum(1, keepdims=True)
tg.manual_seed(int(seed))
model = nn.Sequential(nn.Linear(8, int(width)), nn.Tanh(), nn.Linear(int(width), 1)).double()
optimizer = tg.optim.Adam(model.parameters(), lr=0.01)
training = ElasticTraining(
    model, optimizer, ElasticSampler(inputs, BATCH), min_workers=2, pieces=int(pieces) or None, timeout=60
)


def pass_gate(step):
    """Wait until the test lets this step begin."""
    late = time.monotonic() + GATE_SECONDS
    while step % 5 == 0 and not (Path(gates) / str(step)).exists():
        assert time.monotonic() < late
        time.sleep(0.002)


def leave_at_the_end_of_input():
    sys.stdin.read()
    training.leave()


print("ready", flush=True)
sys.stdin.readline()
threading.Thread(target=leave_at_the_end_of_input, daemon=True).start()
for indices in training.steps(int(steps)):
    step, members = training.completed, ",".join(training.workers)
    pass_gate(step)
    began = time.monotonic()
    loss = nn.functional.mse_loss(model(tg.from_numpy(inputs[indices])), tg.from_numpy(targets[indices]))
    counts = training.step(loss)
    end = time.monotonic()
    if counts:
        print(f"step {step} {members} {training.loss!r} {end:.4f} {end - began:.4f}", flush=True)
    elif not int(pieces) and step == training.completed:
        print(f"again {step} {members}", flush=True)
digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in model.state_dict().values())).hexdigest()
print(f"end {training.completed} {digest}", flush=True)
rpc.shutdown()
