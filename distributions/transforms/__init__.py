"""Invertible functions of tensors and their log-determinants (``torch.distributions.transforms``)."""

from .base import ComposeTransform as ComposeTransform
from .base import Transform as Transform
from .base import identity_transform as identity_transform
from .combined import CatTransform as CatTransform
from .combined import IndependentTransform as IndependentTransform
from .combined import ReshapeTransform as ReshapeTransform
from .combined import StackTransform as StackTransform
from .numbers import AbsTransform as AbsTransform
from .numbers import AffineTransform as AffineTransform
from .numbers import CumulativeDistributionTransform as CumulativeDistributionTransform
from .numbers import ExpTransform as ExpTransform
from .numbers import PowerTransform as PowerTransform
from .numbers import SigmoidTransform as SigmoidTransform
from .numbers import SoftplusTransform as SoftplusTransform
from .numbers import TanhTransform as TanhTransform
from .vectors import CorrCholeskyTransform as CorrCholeskyTransform
from .vectors import LowerCholeskyTransform as LowerCholeskyTransform
from .vectors import PositiveDefiniteTransform as PositiveDefiniteTransform
from .vectors import SoftmaxTransform as SoftmaxTransform
from .vectors import StickBreakingTransform as StickBreakingTransform
