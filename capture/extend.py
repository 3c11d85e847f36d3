"""Interface for layers that record calls of other workers."""

from .branches import MISSED as MISSED
from .compiled import Compiled as Compiled
from .crossings import Crossing as Crossing
from .crossings import RemotePart as RemotePart
from .errors import GivenUp as GivenUp
from .errors import Unrecordable as Unrecordable
from .hops import Hop as Hop
from .hops import Leaving as Leaving
from .hops import differentiate_across as differentiate_across
from .keys import tensors_of as tensors_of
from .recorder import Recorder as Recorder
from .trees import form as form
from .values import mapped as mapped
