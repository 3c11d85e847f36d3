"""Averages of models by PyTorch's modules (``torch.distributed.algorithms.model_averaging``): ours are all in one."""

from ......collective import optim

averagers = optim
hierarchical_model_averager = optim
