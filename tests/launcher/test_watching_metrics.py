"""``telegrad metrics``: metrics of a job that runs, from outside its workers."""

import subprocess
from urllib.request import urlopen

import pytest
from helpers.launched import LAUNCHER, LIMIT, read_until

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
pytestmark = [pytest.mark.processes, pytest.mark.slow]

PROGRAM = """
import time
import telegrad as tg
from telegrad import rpc
rpc.init_rpc()
tg.log(loss=0.5)
print("runs", flush=True)
time.sleep(600)
"""


def test_metrics_of_a_job_are_served(job, here):
    process = job(PROGRAM, "-n", "2")
    read_until(process, 2, "runs")
    command = [*LAUNCHER, "metrics", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        try:
            url = serving.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), url
            with urlopen(url, timeout=LIMIT) as answer:
                families = list(parser.text_string_to_metric_families(answer.read().decode()))
        finally:
            serving.terminate()
    samples = {(each.name, each.labels.get("worker")): each.value for family in families for each in family.samples}
    for worker in ("worker0", "worker1"):
        assert samples["telegrad_up", worker] == 1 and samples["telegrad_logged_value", worker] == 0.5
