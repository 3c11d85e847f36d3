"""Output and processes of a job that ``telegrad run`` started."""

import os
import re
import select
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

LAUNCHER = [sys.executable, "-X", "faulthandler", "-c", "from telegrad.launcher.cli import main; main()"]
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
NEEDS_MPI = pytest.mark.skipif(
    MPIEXEC is None or find_spec("mpi4py") is None, reason="MPI is not installed: pip install mpi4py mpich"
)
LIMIT = 60  # seconds until a job counts as hanging

# Programs of workers.
TOLD_WAITING = "print('waiting', flush=True)\nwhile True: signal.pause()\n"
STUBBORN = """
stubborn = '''import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.write(1, f"pid {os.getpid()}{os.linesep}".encode())  # at once, because they share a pipe
'''
for options in ({}, {"start_new_session": True}, {"env": {}}):
    subprocess.Popen([sys.executable, "-c", stubborn + "signal.pause()"], **options)
exec(stubborn)
"""
# Saves its steps in the folder OUT, goes on from there, and writes its weights.
CHECKPOINTED_TRAINING = """
import os
import numpy as np, telegrad as tg
from telegrad import collective as dist, nn

if __name__ == "__main__":
    dist.init_process_group()
    folder, random = os.environ["OUT"], np.random.default_rng(dist.get_rank())
    tg.manual_seed(7)
    model = nn.parallel.DistributedDataParallel(nn.Linear(6, 1))
    optimizer = tg.optim.Adam(model.parameters(), lr=0.01)
    with tg.checkpoint.Checkpointer(f"{folder}/checkpoints", model=model.module, optimizer=optimizer, draws=random) as saved:
        step = saved.restore()
        while step < 400:
            optimizer.zero_grad()
            (model(tg.from_numpy(random.normal(size=(4, 6)).astype("f4"))) ** 2).mean().backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                saved.save(step)
                print("saved", step, flush=True)
    np.save(f"{folder}/weights{dist.get_rank()}.npy", model.module.weight.detach().numpy())
    dist.destroy_process_group()
"""


def ended(process, code):
    """Return the job's output and summary when it is over; lines about its start and its silence are left out."""
    out, err = process.communicate()
    assert process.returncode == code, out + err
    return out, without_progress(err)


def without_progress(err):
    """Return what the launcher wrote, without the lines about its start, which a busy machine has more of."""
    return re.sub(r"telegrad: (starts |(all )?\d+ (of \d+ )?workers? (have|runs?) ).*\n", "", err)


def read_until(process, count, word):
    """Read output up to the `count`-th line with the word, and return the lines."""
    lines = []
    while count:
        line = process.stdout.readline()
        assert line, f"ended before it said {word!r}: {lines} {process.stderr.read()}"
        lines.append(line)
        count -= word in line
    return lines


class Watched:
    """Processes that are watched by descriptor, because process ids are used again."""

    def __init__(self, pids):
        self.descriptors = [os.pidfd_open(pid) for pid in pids]

    def all_died(self):
        for descriptor in self.descriptors:
            died = bool(select.select([descriptor], [], [], LIMIT)[0])
            os.close(descriptor)
            if not died:
                return False
        return True


def pids_in(lines):
    return [int(pid) for line in lines for pid in re.findall(r"pid (\d+)", line)]


def telegrad(*args, code=0):
    """Run a command, and return what it wrote to standard output."""
    from telegrad.launcher.cli import app

    done = CliRunner().invoke(app, args, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output
