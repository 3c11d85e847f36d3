"""Pictures of the page: jobs with many workers, a lost one, a deadlock and a backward; light, dark and narrow.

They are of real jobs, but for those with very many workers. ``TELEGRAD_PICTURES=docs/pictures`` leaves them there.
"""

import os
import signal
import subprocess
import sys

import pytest
from helpers.browser import (
    count_of,
    fits,
    looks_at,
    no_errors,
    observed,
    open_view,
    picture,
    screen,
    served,
    shows,
    text_of,
)
from helpers.launched import read_until
from telegrad.launcher.dashboard.looks import JobLooks
from telegrad.launcher.watching.jobs import choose_job
from telegrad.rpc.observing.records import ObservedLink

pytestmark = pytest.mark.slow
SCREENS = {"light": {}, "dark": {"dark": True}, "narrow": {"width": 390, "height": 844}}

DEADLOCK = """
import threading
from telegrad import rpc

lock = threading.Lock()

def update(value):
    with lock:
        return value

def relay(value):
    return rpc.rpc_sync("worker0", update, args=(value,), timeout=300)

def train(steps):
    import telegrad as tg
    for step in range(steps):
        tg.log(loss=1.0 / (1 + step) + 0.01 * rpc.get_worker_info().id, step=step)

rpc.init_rpc()
me = rpc.get_worker_info().id
train(60)
rpc._barrier([f"worker{rank}" for rank in range(6)])
if me == 0:
    with lock:
        print("holds", flush=True)
        rpc.rpc_sync("worker1", relay, args=(1,), timeout=300)
rpc.shutdown()
"""

BACKWARD = """
import time
from pathlib import Path
import telegrad as tg
from telegrad import autograd_dist, nn, rpc

SIZE = int(__import__("sys").argv[1])

class Slow(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        print("held", flush=True)
        while not Path("go").exists():
            time.sleep(0.01)
        return gradient

layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())

def forward(x, rank):
    y = layers(x)
    if rank == SIZE - 1 or rank == 2:
        y = Slow.apply(y)
    following = [each for each in (2 * rank + 1, 2 * rank + 2) if each < SIZE] if SIZE > 2 else [rank + 1][: 1 - rank]
    for each in following:
        y = y + rpc.rpc_sync(f"worker{each}", forward, args=(layers(x), each))
    return y

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    with autograd_dist.context() as context_id:
        loss = forward(tg.randn(4, 8, requires_grad=True), 0).sum()
        autograd_dist.backward(context_id, [loss])
        print("done", flush=True)
        while not Path("end").exists():
            time.sleep(0.01)
rpc.shutdown()
"""

STOPPED = """
import os
from telegrad import rpc

def hold():
    import time
    time.sleep(300)

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    calls = [rpc.rpc_async(f"worker{rank}", hold) for rank in (1, 2)]
    print("pid", rpc.rpc_sync("worker2", os.getpid), flush=True)
    for each in calls:
        each.wait()
rpc.shutdown()
"""


def pictures(browser, folder, name, screens=SCREENS):
    """Take a picture on each screen; the page fits each."""
    for screen_name, size in screens.items():
        with screen(browser, **size):
            assert fits(browser)
            picture(browser, folder, f"{name}_{screen_name}")
    assert no_errors(browser) == []


@pytest.mark.parametrize("count", [2, 32, 200])
def test_a_job_of_that_many_workers(browser, monkeypatch, tmp_path, count):
    def links(rank):
        return [ObservedLink(f"worker{(rank + step) % count}", "connected", "unix", 0, 0, 0, 0, 0) for step in (1, 7)]

    seen = [observed(f"worker{rank}", rank, links=links(rank)) for rank in range(count)]
    with served(looks_at(monkeypatch, seen)) as address:
        browser.get(address)
        shows(browser, "#view", f"worker{count - 1}")
        assert count_of(browser, "#graph circle") == count
        pictures(browser, tmp_path, f"workers_{count}")


def test_a_deadlock_is_explained(browser, here, job, tmp_path):
    process = job(DEADLOCK, "-n", "6")
    read_until(process, 1, "holds")
    with served(JobLooks(choose_job(), 2.0)) as address:
        browser.get(address)
        shows(browser, "#why", "deadlock over")
        assert count_of(browser, "#graph circle.bad") == 2
        pictures(browser, tmp_path, "deadlock")
        open_view(browser, "Curves")
        shows(browser, "#view", "loss")
        pictures(browser, tmp_path, "curves")


@pytest.mark.parametrize("count", [2, 7])
def test_a_backward_as_it_goes(browser, here, job, tmp_path, count):
    process = job(BACKWARD, "-n", str(count), args=[str(count)])
    read_until(process, 1, "held")
    with served(JobLooks(choose_job(), 2.0)) as address:
        browser.get(address)
        open_view(browser, "Contexts")
        shows(browser, "#view", "runs SlowBackward")
        assert count_of(browser, ".gradients .box") == count and count_of(browser, ".gradients .waits") >= 1
        pictures(browser, tmp_path, f"backward_{count}")
        (tmp_path / "go").touch()
        shows(browser, "#view", "is over")
        assert count_of(browser, ".gradients .waits") == 0
        pictures(browser, tmp_path, f"backward_{count}_over", {"light": {}})
    (tmp_path / "end").touch()
    assert process.wait(30) == 0


def test_a_stopped_worker(browser, here, job, tmp_path):
    process = job(STOPPED, "-n", "4")
    (line,) = read_until(process, 1, "pid")
    with served(JobLooks(choose_job(), 2.0)) as address:
        browser.get(address)
        shows(browser, "#view", "worker2")
        os.kill(int(line.split()[-1]), signal.SIGSTOP)
        shows(browser, "#view", "stopped")
        shows(browser, "#why", "worker2")
        pictures(browser, tmp_path, "stopped")
    os.kill(int(line.split()[-1]), signal.SIGKILL)
    process.wait(30)


GONE = """
import sys, time
from pathlib import Path
from telegrad import rpc

rank = int(sys.argv[1])
options = rpc.GrpcRpcBackendOptions(init_method=f"file://{Path.cwd()}/place")
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=3, rpc_backend_options=options)
if rank == 0:
    print(*(rpc.rpc_sync(f"worker{each}", max, args=(1, each)) for each in range(3)), flush=True)
while not Path("end").exists():
    time.sleep(0.01)
rpc.shutdown(graceful=False)
"""


def test_a_worker_that_was_killed_stays_on_the_page(browser, here, tmp_path):
    (tmp_path / "train.py").write_text(GONE)
    workers = [subprocess.Popen([sys.executable, "train.py", str(rank)], stdout=subprocess.PIPE) for rank in range(3)]
    try:
        assert workers[0].stdout.readline() == b"1 1 2\n"
        with served(JobLooks(choose_job(), 2.0)) as address:
            browser.get(address)
            shows(browser, "#job", "3 workers")
            workers[2].kill()
            shows(browser, "#view", "gone")
            shows(browser, "#why", "'worker2' has gone: its process died, or ended without rpc.shutdown()")
            assert "'worker2' sleeps" not in text_of(browser, "#why")
            assert count_of(browser, "#graph circle.bad") == 1 and count_of(browser, "#graph circle") == 3
            pictures(browser, tmp_path, "lost")
        (tmp_path / "end").touch()
        assert [each.wait(30) for each in workers] == [0, 0, -signal.SIGKILL]
    finally:
        for each in workers:
            each.kill()
            each.wait()
            each.stdout.close()
