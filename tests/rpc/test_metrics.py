"""Metrics for Prometheus, read by the parser of its client library."""

import contextlib
import socket
import sys
import threading
import urllib.request

import numpy as np
import pytest
import telegrad as tg
from helpers.threads import until
from telegrad import rpc
from telegrad.core.recording import ProgramLog, process_log
from telegrad.rpc.exporting import metrics_server, prometheus
from telegrad.testing import in_process_cluster

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")


@pytest.fixture(autouse=True)
def log(monkeypatch):
    """Let each test have a log of its own."""
    monkeypatch.setattr(process_log, "_log", ProgramLog())


def scrape(url):
    """Return the samples of a scrape: by name and labels, the value."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        families = list(parser.text_string_to_metric_families(answer.read().decode()))
    samples = [each for family in families for each in family.samples]
    found = {(each.name, *sorted(each.labels.items())): each.value for each in samples}
    assert len(found) == len(samples), "no sample stands twice"
    return found


def of(samples, name, /, **labels):
    return samples[(f"telegrad_{name}", *sorted(labels.items()))]


def test_metrics_of_a_worker_are_scraped():
    with in_process_cluster("a", "b") as (a, _), a.use():
        kept = rpc.remote("b", np.ones, args=((4, 8),))
        kept.to_here()
        tg.log(loss=0.5, step=3)
        for _ in tg.progress(range(4), description='with "quotes"\nand lines'):
            pass
        with rpc.serve_metrics() as server:
            assert server.url.startswith("http://127.0.0.1:")
            samples = scrape(server.url)
            again = scrape(server.url)
    assert of(samples, "up", worker="a") == 1 and ("telegrad_up", ("worker", "b")) not in samples
    assert of(samples, "calls_made_total", worker="a") >= 2 and of(samples, "memory_bytes", worker="a") > 1 << 20
    assert of(samples, "references_held", worker="a") == 1 and of(samples, "threads", worker="a") >= 1
    assert of(samples, "link_sent_messages_total", worker="a", to="b") >= 2
    assert of(samples, "link_sent_bytes_total", worker="a", to="b") > 0
    assert of(samples, "link_received_messages_total", worker="a", to="b") >= 1
    assert of(samples, "logged_value", worker="a", name="loss") == 0.5
    assert of(samples, "logged_step", worker="a", name="loss") == 3
    assert of(samples, "loop_done_items", worker="a", description='with "quotes"\nand lines') == 4
    assert of(again, "cpu_seconds_total", worker="a") >= of(samples, "cpu_seconds_total", worker="a") > 0


def test_a_client_that_says_nothing_is_cut_off(monkeypatch, capfd):
    monkeypatch.setattr(metrics_server, "SCRAPE_SECONDS", 0.1)
    with (
        in_process_cluster("a") as (a,),
        a.use(),
        rpc.serve_metrics() as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=20) as client,
    ):
        client.sendall(b"GET /metr")
        assert client.recv(1) == b""
    assert "Traceback" not in capfd.readouterr().err


def test_silent_clients_do_not_keep_others_out():
    with in_process_cluster("a") as (a,), a.use(), rpc.serve_metrics() as server, contextlib.ExitStack() as stack:
        place = ("127.0.0.1", server.port)
        silent = [
            stack.enter_context(socket.create_connection(place, timeout=20))
            for _ in range(metrics_server.MOST_SCRAPERS + 4)
        ]
        assert silent[0].recv(1) == b""  # the oldest
        assert of(scrape(server.url), "up", worker="a") == 1
        assert len(server._server._scrapers) <= metrics_server.MOST_SCRAPERS


def test_a_client_whose_scrape_goes_on_is_not_joined_by_more_threads(monkeypatch):
    gate, begun = threading.Event(), threading.Semaphore(0)
    monkeypatch.setattr(metrics_server, "MOST_SCRAPERS", 2)
    monkeypatch.setattr(metrics_server, "CUT_SECONDS", 0.05)

    def observe():
        begun.release()
        gate.wait(20)
        return []

    with metrics_server.MetricsServer(prometheus.WorkerMetrics(observe), 0, "127.0.0.1") as server:
        clients = []
        for _ in range(2):
            clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            clients[-1].sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            begun.acquire(timeout=20)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as refused:
            assert refused.recv(1) == b""
        assert len(server._server._scrapers) == 2
        gate.set()
        for each in clients:
            each.close()


FORKED = """
import os, signal, sys
from telegrad import rpc
rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=rpc.GrpcRpcBackendOptions(init_method=sys.argv[1]))
server = rpc.serve_metrics()
if not (child := os.fork()):
    signal.alarm(20)
    server.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
server.close()
rpc.shutdown()
"""


@pytest.mark.processes
def test_a_forked_child_may_close_the_server_and_does_not_wait_for_its_thread(run_python, tmp_path):
    assert run_python("-c", FORKED, f"file://{tmp_path}/place").strip() == "0"


def test_one_worker_may_serve_the_metrics_of_all_and_shows_one_that_is_gone():
    with in_process_cluster("a", "b", "c") as (a, b, _), a.use():
        for name in ("b", "c"):
            rpc.rpc_sync(name, max, args=(1, 2))
        with rpc.serve_metrics(workers=["a", "b", "c"]) as server:
            samples = scrape(server.url)
            assert [of(samples, "up", worker=name) for name in "abc"] == [1, 1, 1]
            assert of(samples, "requests_accepted_total", worker="c") >= 1
            b.close("killed by the test")
            until(lambda: a.peers.find("b").gone)
            samples = scrape(server.url)
    assert of(samples, "up", worker="b") == 0 and ("telegrad_memory_bytes", ("worker", "b")) not in samples


def test_a_program_may_register_the_collector_itself():
    from prometheus_client import CollectorRegistry, generate_latest

    with in_process_cluster("a") as (a,), a.use():
        registry = CollectorRegistry()
        registry.register(rpc.metrics())
        assert b'telegrad_up{worker="a"} 1.0' in generate_latest(registry)


def test_bad_input_and_a_missing_library_are_told(monkeypatch):
    with in_process_cluster("a") as (a,), a.use():
        with pytest.raises(LookupError, match="no worker 'x'"):
            rpc.serve_metrics(workers="x")
        with pytest.raises(ValueError, match="port=70000"):
            rpc.serve_metrics(port=70000)
        with rpc.serve_metrics() as server, pytest.raises(OSError, match="in use"):
            rpc.serve_metrics(port=server.port)
        monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
        monkeypatch.delitem(sys.modules, "telegrad.rpc.exporting.metric_families", raising=False)
        with pytest.raises(ImportError, match=r"pip install prometheus-client"):
            rpc.metrics()
