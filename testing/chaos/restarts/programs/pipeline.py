"""Training through a pipeline: stages on other workers, whose states the driver keeps in its checkpoints."""

from __future__ import annotations

import sys
from typing import Any

from ..... import data, nn, optim
from .....agents import init_rpc
from .....checkpoint import Checkpointer
from .....core import arange, manual_seed, rand
from .....pipelining import Pipeline
from .....rpc import get_worker_info, shutdown
from .....rref import RemoteModule
from ..diary import Diary
from .digests import digest_of

SAMPLES, BATCH, SAVE_EVERY = 96, 16, 5


def first(seed: int = 1) -> nn.Module:
    """Return the first stage."""
    manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh())


def last(seed: int = 2) -> nn.Module:
    """Return the last stage."""
    manual_seed(seed)
    return nn.Linear(32, 1)


class Remote:
    """State of a stage on another worker, as a part of a checkpoint."""

    def __init__(self, stage: RemoteModule) -> None:
        self._module = stage.get_module_rref()

    def state_dict(self) -> Any:
        """Fetch the state."""
        return self._module.rpc_sync().state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Set the state."""
        self._module.rpc_sync().load_state_dict(state)


def train(folder: str, steps: int, diary: Diary) -> str:
    """Drive the stages from the last checkpoint on, and return a digest of their states."""
    stages = [RemoteModule("worker1", first), RemoteModule("worker2", last)]
    pipeline = Pipeline(stages, nn.functional.mse_loss, n_microbatches=4)
    optimizer = pipeline.optimizer(optim.SGD, lr=0.05)
    manual_seed(0)
    inputs = rand(SAMPLES, 8)
    dataset = data.TensorDataset(inputs, inputs.sum(1, keepdim=True), arange(SAMPLES))
    loader = data.DataLoader(dataset, BATCH, shuffle=True)
    states = [Remote(stage) for stage in stages]
    with Checkpointer(folder, loader=loader, first=states[0], last=states[1]) as checkpoints:
        step = checkpoints.restore()
        while step < steps:
            for batch, target, numbers in loader:
                optimizer.zero_grad()
                pipeline.step(batch, target)
                optimizer.step()
                step += 1
                diary.step(step, numbers.tolist())
                if step % SAVE_EVERY == 0:
                    checkpoints.save(step)
                if step == steps:
                    break
    return " ".join(digest_of(part.state_dict()) for part in states)


def main(folder: str, steps: int) -> None:
    """Drive, or be a stage."""
    with Diary() as diary:
        init_rpc()
        if get_worker_info().id == 0:
            diary.done(train(folder, steps, diary))
        else:
            diary.step(0, "ready")
        shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
