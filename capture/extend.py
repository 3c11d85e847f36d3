"""Interface for layers that record calls of other workers."""

from .compiled import Compiled as Compiled
from .crossings import Crossing as Crossing
from .crossings import RemotePart as RemotePart
from .description import Description as Description
from .differentiable import ReplayNode as ReplayNode
from .errors import EARLY as EARLY
from .errors import GivenUp as GivenUp
from .errors import Unrecordable as Unrecordable
from .hops import Hop as Hop
from .hops import Leaving as Leaving
from .hops import arrived as arrived
from .keys import tensors_of as tensors_of
from .leaving import drops as drops
from .lines import Place as Place
from .passes_across import PassAcross as PassAcross
from .plan import Plan as Plan
from .recorder import Recorder as Recorder
from .trees import form as form
from .values import Value as Value
from .values import mapped as mapped
