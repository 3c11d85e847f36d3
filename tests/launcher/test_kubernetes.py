"""Pods of the manifest of ``telegrad run --engine kubernetes``, started by hand with only what Kubernetes gives them.

Each is a host of its own (network namespace) with the variables of an indexed Job, the headless Service's names, and nothing of
this process' environment.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import LAUNCHER, LIMIT, ended

pytestmark = [pytest.mark.processes, pytest.mark.slow, NEEDS_ROOT]

WHO = """
import os
from telegrad import rpc
from telegrad.rpc.extend import current_agent

def who():
    return rpc.get_worker_info().name, current_agent().credentials.tls is not None

if __name__ == "__main__":
    rpc.init_rpc(os.environ["TELEGRAD_WORKER"])
    if os.environ["RANK"] == "0":
        print(*(rpc.rpc_sync(rank, who) for rank in range(3)), os.environ["HOME"], flush=True)
    rpc.shutdown()
"""


def manifest(folder, *options):
    """Return the Secret and the Job."""
    command = [*LAUNCHER, "run", "--engine", "kubernetes", "--dry-run", "--image", "train:1", *options]
    environment = {name: value for name, value in os.environ.items() if name != "TELEGRAD_TOKEN"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, cwd=folder, env=environment, check=True
    )
    secret, _, job = json.loads(done.stdout)["items"]
    return secret, job


def variables(container, secret, index, address):
    """Return the environment of a pod of an indexed Job."""
    given = {"JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"train-{index}", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    given |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": "/"}  # of the image
    for entry in container["env"]:
        source = entry["valueFrom"]
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == "status.podIP"
            given[entry["name"]] = address
        else:
            assert source["secretKeyRef"]["name"] == secret["metadata"]["name"]
            given[entry["name"]] = secret["stringData"][source["secretKeyRef"]["key"]]
    return given


def expanded(words, given):
    """Return a container's command as Kubernetes starts it: ``$(NAME)`` is a variable, ``$$(NAME)`` the text ``$(NAME)``."""
    pattern = re.compile(r"\$(\$\([A-Z_]+\))|\$\(([A-Z_]+)\)")
    return [pattern.sub(lambda found: found[1] or given.get(found[2], found[0]), word) for word in words]


def test_the_pods_of_a_manifest_find_one_another(tmp_path):
    (tmp_path / "train.py").write_text(WHO)
    secret, job = manifest(tmp_path, "--nnodes", "3", "-n", "1", "train.py", "$(HOME)")
    [container] = job["spec"]["template"]["spec"]["containers"]
    names = "".join(f"10.77.0.{pod + 1} train-{pod}.train train-{pod}\n" for pod in range(3))
    (tmp_path / "names").write_text(f"127.0.0.1 localhost\n{names}")
    named = ["unshare", "--mount", "sh", "-c", f'mount --bind {tmp_path}/names /etc/hosts && exec "$0" "$@"']
    with made_hosts(tmp_path, job["spec"]["completions"]) as hosts:
        pods = []
        for index in reversed(range(3)):  # Kubernetes starts them in any order
            (tmp_path / str(index)).mkdir()
            (tmp_path / str(index) / "train.py").write_text(WHO)
            given = variables(container, secret, index, f"10.77.0.{index + 1}")
            words = expanded(container["command"], given)
            assert words[-1] == "$(HOME)"
            pairs = [f"{name}={value}" for name, value in given.items()]
            pods.append(hosts.run(index, [*named, "env", "--ignore-environment", *pairs, *words]))
        out, err = ended(pods[-1], 0)
        for pod in pods[:-1]:
            ended(pod, 0)
    assert "('worker0', True) ('worker1', True) ('worker2', True) /" in out, out
    assert "node 0 of 3: rank 0 of 3, reached at 10.77.0.1; rank 0 at train-0.train:" in err, err
