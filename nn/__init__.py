"""Modules, layers, losses, initialisation (``torch.nn``)."""

from . import functional as functional
from . import init as init
from . import utils as utils
from .activation import Dropout as Dropout
from .activation import LogSoftmax as LogSoftmax
from .activation import ReLU as ReLU
from .activation import Sigmoid as Sigmoid
from .activation import Softmax as Softmax
from .activation import Tanh as Tanh
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import Sequential as Sequential
from .embedding import Embedding as Embedding
from .errors import StateDictError as StateDictError
from .linear import Flatten as Flatten
from .linear import Identity as Identity
from .linear import Linear as Linear
from .loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from .loss import CrossEntropyLoss as CrossEntropyLoss
from .loss import L1Loss as L1Loss
from .loss import MSELoss as MSELoss
from .loss import NLLLoss as NLLLoss
from .module import Module as Module
from .normalization import LayerNorm as LayerNorm
from .parameter import Parameter as Parameter
