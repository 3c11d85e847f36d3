"""``telegrad run --restart`` with real processes: who is started again, with what, when that ends, and that nothing is left."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from helpers.launched import TOLD_WAITING, Watched, ended, pids_in, read_until

pytestmark = pytest.mark.processes

FACTS = """
import json
rank, count = int(os.environ["RANK"]), int(os.environ["TELEGRAD_RESTART_COUNT"])
names = ("MASTER_PORT", "TELEGRAD_WORKER", "WORLD_SIZE", "TELEGRAD_RESTART", "TORCHELASTIC_RESTART_COUNT")
secret = open(os.environ["TELEGRAD_CREDENTIALS"] + "/secret").read()
print(json.dumps([rank, count, *(os.environ[name] for name in names), secret]), flush=True)
"""
KILL_ONE_ONCE = """
import time
if (rank, count) == (1, 0):
    os.kill(os.getpid(), signal.SIGKILL)
while any(not os.path.exists(f"{other}-{1 if other >= FIRST else 0}") for other in range(3)):
    if not os.path.exists(f"{rank}-{count}"):
        open(f"{rank}-{count}", "w").close()
    time.sleep(0.01)
"""


def facts_of(out):
    return sorted(json.loads(line.partition(" | ")[2]) for line in out.splitlines() if " | [" in line)


@pytest.mark.parametrize("way", ["--preload", "--no-preload"])
@pytest.mark.parametrize("policy, first, last", [("one", 1, 1), ("rest", 1, 2), ("all", 0, 2)])
def test_the_policy_says_who_is_started_again(job, tmp_path, policy, first, last, way):
    wait = KILL_ONE_ONCE.replace("other >= FIRST", f"{first} <= other <= {last}")
    out, err = ended(job(FACTS + wait, "-n", "3", "--restart", policy, way), 0)
    found = facts_of(out)
    began = next(facts for facts in found if not facts[1])
    assert [(rank, count) for rank, count, *_ in found if count] == [(rank, 1) for rank in range(first, last + 1)]
    for rank, count, port, name, size, told, torchs, secret in found:
        assert (name, size, told, torchs) == (f"worker{rank}", "3", policy, str(count))
        same = (port, secret) == (began[2], began[-1])
        assert same == (policy != "all" or not count), "all meet at a new port, with a new secret"
    others = {"one": "", "rest": ", and with it worker2", "all": ""}[policy]
    if policy == "all":
        assert "all 3 workers are started again at once (restart 1): worker1 died of SIGKILL (9)\n" in err
    else:
        assert f"worker1 died of SIGKILL (9); it is started again at once (restart 1){others}\n" in err
    assert "telegrad: 3 workers finished in" in err and "\nrestarts: 1\n" in err
    (log,) = tmp_path.glob("telegrad_runs/*/worker1.log")
    assert re.fullmatch(r"\[1, 0, .*\n--- telegrad: restart 1 of worker1 ---\n\[1, 1, .*\n", log.read_text())


def test_a_failure_at_once_each_time_ends_the_job_with_its_cause(job):
    source = "print('began', flush=True)\nif os.environ['RANK'] == '1': raise KeyError('always')\nsignal.pause()"
    out, err = ended(job(source, "-n", "2", "--restart", "one"), 1)
    assert out.count("worker1 | began") == 3 and out.count("worker0 | began") == 1
    assert "worker1 exited with code 1 (KeyError: 'always'); it is started again in 0.1 s (restart 2)\n" in err
    assert "root cause: worker1 (rank 1) exited with code 1\n" in err and "    KeyError: 'always'\n" in err
    assert "\nnot started again: it has failed 3 times in a row within 10 s of its start, in the same way\n" in err


@pytest.mark.parametrize("pause", ["0", "0.5"])
def test_a_worker_that_is_killed_after_shutdown_ends_the_job_as_it_would_meet_no_other(job, pause):
    source = f"""
from telegrad import rpc
rpc.init_rpc()
rpc.shutdown()
if os.environ["RANK"] == "1":
    time.sleep({pause})
    os.kill(os.getpid(), signal.SIGKILL)
"""
    _, err = ended(job("import time" + source, "-n", "3", "--restart", "one"), 137)
    assert "root cause: worker1 (rank 1) died of SIGKILL (9)" in err and "\nrestarts" not in err
    assert "\nnot started again: it had left the job with all others (by rpc.shutdown), so" in err


def test_so_does_one_restart_more_than_allowed(job):
    source = "os.kill(os.getpid(), signal.SIGKILL)"
    _, err = ended(job(source, "--max-restarts", "2", "--within", "60"), 137)
    assert "not started again: this job restarts workers at most 2 times within 60 s;" in err and "restarts: 2\n" in err


def test_a_role_has_a_policy_of_its_own(job):
    source = """
if os.environ["TELEGRAD_WORKER"] == "trainer0" and os.environ["TELEGRAD_RESTART_COUNT"] == "0":
    sys.exit(3)
if os.environ["TELEGRAD_WORKER"] == "trainer0":
    open("go", "w").close()
    signal.pause()
while not os.path.exists("go"):
    pass
sys.exit(4)
"""
    _, err = ended(job(source, "--roles", "ps,trainer=1", "--restart", "trainer=one"), 4)
    assert "trainer0 exited with code 3; it is started again" in err and "root cause: ps (rank 0) exited with" in err


def test_what_a_killed_worker_left_running_is_ended_before_the_next_begins(job):
    source = (
        """
if os.environ["TELEGRAD_RESTART_COUNT"] == "0":
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    print("pid", child.pid, flush=True)
    sys.stdout.close()
    os.kill(os.getpid(), signal.SIGKILL)
print("again", flush=True)
"""
        + TOLD_WAITING
    )
    process = job(source, "--restart", "one")
    lines = read_until(process, 1, "pid")
    watched = Watched(pids_in(lines))
    read_until(process, 1, "again")
    assert watched.all_died()
    process.terminate()
    ended(process, 143)


def test_an_interruption_between_two_rounds_ends_the_job(job):
    process = job("os.kill(os.getpid(), signal.SIGKILL)", "-n", "2", "--restart", "all", "--max-restarts", "50")
    while "(restart 6)" not in process.stderr.readline():  # after 1.6 s
        pass
    process.send_signal(signal.SIGINT)
    _, err = ended(process, 130)
    assert "interrupted by SIGINT" in err and "(restart 7)" not in err


def test_workers_of_a_later_round_end_with_a_launcher_that_is_killed(job, until):
    source = (
        """
if os.environ["TELEGRAD_RESTART_COUNT"] == "0":
    sys.exit(1)
print("pid", os.getpid(), os.environ["TELEGRAD_CREDENTIALS"], flush=True)
"""
        + TOLD_WAITING
    )
    process = job(source, "-n", "2", "--restart", "all")
    lines = read_until(process, 2, "pid")
    watched = Watched(pids_in(lines))
    process.kill()
    assert watched.all_died()
    until(lambda: not Path(lines[-1].split()[-1]).parent.exists())


MEMBER = """
from telegrad import rpc
from telegrad.base.errors import WorkerLostError
def who():
    return os.getpid()
rank = int(os.environ["RANK"])
del os.environ["WORLD_SIZE"]
options = rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}")
rpc.init_rpc(f"w{rank}", rank=rank, rpc_backend_options=options)
def call():
    while True:
        rpc.wait_for_workers(["w1"], timeout=60)
        try:
            return rpc.rpc_sync("w1", who)
        except WorkerLostError:
            continue
if rank == 0:
    pids = [call()]
    while len(pids) < 3:
        os.kill(pids[-1], signal.SIGKILL)
        while pids[-1] == (pid := call()):
            continue
        pids.append(pid)
    print("processes", len(set(pids)), flush=True)
    open("done", "w").close()
else:
    import time
    while not os.path.exists("done"):
        time.sleep(0.01)
rpc.shutdown()
"""


FIXED = """
from telegrad import rpc
@rpc.idempotent
def who():
    return os.getpid(), int(os.environ["TELEGRAD_RESTART_COUNT"])
rank = int(os.environ["RANK"])
rpc.init_rpc()
if (rank, who()[1]) == (0, 0):
    for worker in ("worker1", "worker2"):
        before, _ = rpc.rpc_sync(worker, who, retry=rpc.RetryPolicy())
        os.kill(before, signal.SIGKILL)
        while (answer := rpc.rpc_sync(worker, who, retry=rpc.RetryPolicy()))[0] == before:
            continue
        print(worker, "again", answer[1], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
rpc.shutdown()
print("left", who()[1], flush=True)
"""


@pytest.mark.parametrize("policy, counts", [("one", (1, 1, 1)), ("rest", (1, 2, 3))])
def test_a_worker_of_a_job_of_fixed_size_takes_its_place_again_rank_0_too(job, policy, counts):
    out, err = ended(job(FIXED, "-n", "3", "--restart", policy), 0)
    for rank, count in enumerate(counts):
        assert f"worker{rank} | left {count}\n" in out
    assert "worker0 | worker1 again 1\n" in out and "\nrestarts: 3\n" in err


ENDS_EARLY = """
from telegrad.base.errors import WorkerLostError
from telegrad import rpc
@rpc.idempotent
def who(): return os.getpid()
rpc.init_rpc(rpc_backend_options=rpc.GrpcRpcBackendOptions(replace_within=1000))
if os.environ["RANK"] == "1":
    sys.exit()
try:
    while True:  # it may answer before it ends
        rpc.rpc_sync("worker1", who, timeout=1000, retry=rpc.RetryPolicy(attempts=1000))
except WorkerLostError:
    try:
        rpc.wait_for_workers("worker1", timeout=1000)
    except WorkerLostError as error:
        print("lost", error, flush=True)
rpc.shutdown()
"""


def test_no_worker_waits_for_one_that_has_ended_and_is_not_started_again(job):
    out, err = ended(job(ENDS_EARLY, "-n", "3", "--restart", "one"), 0)
    assert out.count("| lost worker 'worker1' (rank 1) is gone") == 2 and "ended without rpc.shutdown()" in err


def test_a_worker_of_a_dynamic_group_comes_back_by_its_name(job):
    out, err = ended(job(MEMBER, "-n", "2", "--restart", "one"), 0)
    assert "worker0 | processes 3\n" in out and "\nrestarts: 2\n" in err


def test_a_job_file_has_a_table_of_roles(job, tmp_path):
    (tmp_path / "job.toml").write_text(
        'script = "script.py"\nroles = "ps,trainer=2"\nmax-restarts = 5\nwithin = 60\n[restart]\nps = "all"\ntrainer = "one"\n'
    )
    out, _ = ended(job("", "--job", "job.toml", "--dry-run", script_named=False), 0)
    assert out.endswith("restarts: ps=all,trainer=one --max-restarts 5 --within 60\n")


@pytest.mark.parametrize(
    "options, why",
    [
        (["--restart", "two"], "write one of never, one, rest, all"),
        (["--max-restarts", "-1"], "must be 0 or more"),
        (["--restart", "one", "--within", "60"], "give --max-restarts, too"),
        (["--restart", "trainer=one"], "--restart names the role 'trainer', which this job does not have"),
        (["--restart", "one", "--engine", "mpi"], "--restart one is not for --engine mpi"),
        (["--restart", "all", "--engine", "ray"], "--restart all is not for --engine ray"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(job, options, why):
    assert why in ended(job("", *options), 2)[1]


TRAINING = """
import time
import numpy as np
import telegrad as tg
from telegrad import collective as dist, nn

dist.init_process_group()
rank = dist.get_rank()
tg.manual_seed(7)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer = tg.optim.Adam(model.parameters(), lr=0.01)
random = np.random.default_rng(rank)
with tg.checkpoint.Checkpointer("checkpoints", model=model.module, optimizer=optimizer, random=random) as checkpoints:
    step = checkpoints.restore()
    print("pid", os.getpid(), "from", step, flush=True)
    while step < 60:
        x = tg.from_numpy(random.normal(size=(4, 6)).astype("f4"))
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        step += 1
        if step % 4 == 0:
            checkpoints.save(step)
        print("step", step, flush=True)
np.save(f"weights{rank}.npy", np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]))
dist.destroy_process_group()
"""


def test_a_training_that_is_killed_at_any_time_ends_with_the_same_weights(job, tmp_path):
    """Three times a worker is killed, wherever its step is just then; undisturbed, the training gives the same to the bit."""
    ended(job(TRAINING, "-n", "2"), 0)
    expected = [(tmp_path / f"weights{rank}.npy").read_bytes() for rank in range(2)]
    for path in (tmp_path / "checkpoints").rglob("*"):
        if path.is_file():
            path.unlink()
    process = job(TRAINING, "-n", "2", "--restart", "all")
    for steps, victim in ((9, 0), (23, 1), (14, 0)):
        lines = read_until(process, 2, "pid")
        pid = next(pids_in([line])[0] for line in lines if line.startswith(f"worker{victim}") and "pid" in line)
        read_until(process, steps, "step")
        os.kill(pid, signal.SIGKILL)
    _, err = ended(process, 0)
    assert [(tmp_path / f"weights{rank}.npy").read_bytes() for rank in range(2)] == expected
    assert "\nrestarts: 3\n" in err
