"""Start of processes by the path of its definition (``torch.multiprocessing.spawn``)."""

from ....launcher import ProcessContext as ProcessContext
from ....launcher import ProcessException as ProcessException
from ....launcher import ProcessExitedException as ProcessExitedException
from ....launcher import ProcessRaisedException as ProcessRaisedException
from ....launcher import spawn as spawn

start_processes = spawn
SpawnContext = ProcessContext
