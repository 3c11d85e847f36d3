"""Training of one module on many ranks (``torch.nn.parallel``). Users find it as ``telegrad.nn.parallel``."""

from ...nn import DataParallel as DataParallel
from . import comm_hooks as comm_hooks
from .buckets import GradBucket as GradBucket
from .data_parallel import data_parallel as data_parallel
from .distributed_data_parallel import DistributedDataParallel as DistributedDataParallel
