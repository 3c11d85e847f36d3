"""``python -m telegrad.launcher.clusters.mpi_worker SCRIPT ARGS``: run a program so that an exception in it ends all MPI ranks.

That is ``python -m mpi4py``, with output line by line, so that mpiexec can put a rank before each.
"""

import io
import sys

from mpi4py.run import main

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(line_buffering=True, write_through=False)
    main()
