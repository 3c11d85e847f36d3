"""Optimizers over the ranks of a process group (``torch.distributed.optim``), and averages of models."""

from .averagers import HierarchicalModelAverager as HierarchicalModelAverager
from .averagers import PeriodicModelAverager as PeriodicModelAverager
from .averagers import average_parameters as average_parameters
from .clipping import clip_grad_norm_ as clip_grad_norm_
from .post_local_sgd import PostLocalSGDOptimizer as PostLocalSGDOptimizer
from .zero_redundancy import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
