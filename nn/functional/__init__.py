"""Layers and losses as functions (``torch.nn.functional``)."""

from ...core import pad as pad
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .batch_norm import *  # noqa: F403
from .class_loss import *  # noqa: F403
from .convolution import *  # noqa: F403
from .ctc import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .embedding import *  # noqa: F403
from .embedding_bag import *  # noqa: F403
from .embedding_loss import *  # noqa: F403
from .gelu import *  # noqa: F403
from .grid_sampling import *  # noqa: F403
from .layer_norm import *  # noqa: F403
from .linear import *  # noqa: F403
from .linear_cross_entropy import *  # noqa: F403
from .loss import *  # noqa: F403
from .multi_head import *  # noqa: F403
from .normalization import *  # noqa: F403
from .piecewise import *  # noqa: F403
from .pixels import *  # noqa: F403
from .pooling import *  # noqa: F403
from .softmax import *  # noqa: F403
