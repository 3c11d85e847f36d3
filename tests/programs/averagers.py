"""Means of models in groups of growing size, on real processes. Argument: the backend."""

import sys

import telegrad as tg
from telegrad import collective as dist
from telegrad.collective.optim import HierarchicalModelAverager

if __name__ == "__main__":
    dist.init_process_group(sys.argv[1], timeout=60)
    rank = dist.get_rank()
    averager = HierarchicalModelAverager({1: 2, 3: 4})
    weight = tg.full((2,), float(rank))
    seen = []
    for _ in range(4):
        averager.average_parameters([{"params": [weight]}])
        seen.append(weight[0].item())
        weight += rank
    pairs = 0.5 + 2 * (rank // 2)  # mean of the ranks of a pair
    assert seen == [1.5, 1.5 + pairs, 1.5 + 2 * pairs, 6.0], seen
    dist.destroy_process_group()
    print("all right")
