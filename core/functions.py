"""The functions, classes and dtypes that ``telegrad`` offers under the same names: what each module's ``__all__`` lists."""

from .creation import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .ops.casting import *  # noqa: F403
from .ops.convolution import *  # noqa: F403
from .ops.elementwise import *  # noqa: F403
from .ops.indexing import *  # noqa: F403
from .ops.interpolation import *  # noqa: F403
from .ops.joining import *  # noqa: F403
from .ops.layouts import *  # noqa: F403
from .ops.linalg import *  # noqa: F403
from .ops.losses import *  # noqa: F403
from .ops.pooling import *  # noqa: F403
from .ops.reductions import *  # noqa: F403
from .ops.shaping import *  # noqa: F403
from .ops.softmax import *  # noqa: F403
from .ops.unpooling import *  # noqa: F403
from .random import *  # noqa: F403
from .random_tensors import *  # noqa: F403
