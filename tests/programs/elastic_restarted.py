"""Worker of an elastic training under the launcher. Arguments: steps, the step that the victim begins and dies in, its name."""

import hashlib
import os
import signal
import sys

import telegrad as tg
from telegrad import collective, rpc

steps, deadly, victim = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rpc.init_rpc()
name, restarts = rpc.get_worker_info().name, int(os.environ.get("TELEGRAD_RESTART_COUNT", "0"))
tg.manual_seed(restarts)  # one that was started again has other weights until it gets those of the training
x = tg.linspace(-1, 1, 64).reshape(-1, 1)
model = tg.nn.Sequential(tg.nn.Linear(1, 16), tg.nn.Tanh(), tg.nn.Linear(16, 1))
optimizer, sampler = tg.optim.Adam(model.parameters(), lr=0.02), tg.data.ElasticSampler(x, batch_size=16)
training = collective.ElasticTraining(model, optimizer, sampler, min_workers=3, pieces=4, timeout=60)
for indices in training.steps(steps):
    if name == victim and training.completed == deadly and not restarts:
        os.kill(os.getpid(), signal.SIGKILL)
    training.step(tg.nn.functional.mse_loss(model(x[indices]), x[indices] ** 2))
digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in model.state_dict().values())).hexdigest()
print(f"{training.completed} steps {digest}")
rpc.shutdown()
