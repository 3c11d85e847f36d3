"""Workers that train equal models with ZeRO, save together, and go on; the first prints what they have."""

import hashlib
import sys

import telegrad as tg
from telegrad import collective as dist
from telegrad.collective.optim import ZeroRedundancyOptimizer


def digest(tensors):
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()


def main(folder, last, every):
    dist.init_process_group()
    tg.manual_seed(3)
    model = tg.nn.Sequential(*(tg.nn.Linear(size, size + 1) for size in (3, 4, 5, 6)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), tg.optim.Adam, lr=0.01)
    checkpoints = tg.checkpoint.Checkpointer(folder, model=model, optimizer=optimizer)
    step = begun = checkpoints.restore()
    while step < last:
        optimizer.zero_grad()
        model(
            tg.full((2, 3), float(step))
        ).sum().backward()  # equal on all workers, so any number of them gives equal steps
        optimizer.step()
        step += 1
        if step % every == 0:
            checkpoints.save_async(step)
    checkpoints.close()
    optimizer.consolidate_state_dict(0)
    if dist.get_rank() == 0:
        states = [value for state in optimizer.state_dict()["state"].values() for value in state.values()]
        tensors = [*model.parameters(), *(each for each in states if isinstance(each, tg.Tensor))]
        print("begun", begun, "digest", digest(tensors), len(tensors), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
