"""Schedulers of learning rates (``torch.optim.lr_scheduler``)."""

from .base import LRScheduler as LRScheduler
from .base import _LRScheduler as _LRScheduler
from .combined import ChainedScheduler as ChainedScheduler
from .combined import SequentialLR as SequentialLR
from .cosine import CosineAnnealingLR as CosineAnnealingLR
from .cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cyclic import CyclicLR as CyclicLR
from .one_cycle import OneCycleLR as OneCycleLR
from .plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .simple import ConstantLR as ConstantLR
from .simple import ExponentialLR as ExponentialLR
from .simple import LambdaLR as LambdaLR
from .simple import LinearLR as LinearLR
from .simple import MultiplicativeLR as MultiplicativeLR
from .simple import MultiStepLR as MultiStepLR
from .simple import PolynomialLR as PolynomialLR
from .simple import StepLR as StepLR
from .swa import SWALR as SWALR
