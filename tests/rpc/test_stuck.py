"""Twenty jobs that are stuck, each in its own way: the explanation names the cause, its worker and its line."""

import json
import logging
from pathlib import Path

import pytest
from helpers.gates import GATE, hold
from helpers.programs import PROGRAMS
from helpers.threads import until
from programs.stuck.jobs import STUCK
from telegrad import rpc
from telegrad.base.errors import RendezvousError
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.threads import notices
from telegrad.testing import in_process_cluster

JOBS = PROGRAMS / "stuck" / "jobs.py"


def hold_at(name):
    """Wait for the gate at one worker."""
    return 1 if rpc.get_worker_info().name != name else int(GATE.wait(60))


def line_marked(name):
    """Return the number of the line that a job's explanation must name."""
    (line,) = [
        number for number, text in enumerate(JOBS.read_text().splitlines(), 1) if text.endswith(f"# stuck: {name}")
    ]
    return line


def problems(stuck, found):
    """Return what an explanation lacks, as JSON or in its text."""
    causes = [
        each
        for each in json.loads(found["json"])["causes"]
        if (each["kind"], each["worker"]) == (stuck.kind, stuck.worker)
    ]
    places = [each["at"] for each in causes] + [step["at"] for each in causes for step in each["chain"]]
    lines = {(Path(at["file"]).name, at["line"]) for at in places if at}
    if not causes:
        yield f"it has no cause of kind {stuck.kind} at {stuck.worker}"
    if stuck.text not in found["text"]:
        yield f"its text does not have {stuck.text!r}"
    if stuck.place is not None and (JOBS.name, line_marked(stuck.place)) not in lines:
        yield f"its JSON has no line {line_marked(stuck.place)}"
    if stuck.place is not None and f"{JOBS}:{line_marked(stuck.place)}" not in found["text"]:
        yield f"its text has no line {line_marked(stuck.place)}"


@pytest.mark.slow
def test_a_job_of_processes_that_is_stuck_is_explained(run_python):
    """Of them one runs after the other, on the same four processes."""
    said = [json.loads(line) for line in run_python(PROGRAMS / "stuck" / "harness.py", timeout=300).splitlines()]
    found = {each["name"]: each for each in said}
    assert list(found) == list(STUCK)
    lacks = {name: [*problems(stuck, found[name]), found[name]["text"]] for name, stuck in STUCK.items()}
    assert {name: each for name, each in lacks.items() if len(each) > 1} == {}
    for worker in ("worker0", "worker1"):  # where it is, and its creator
        assert [worker, "worker0"] in found["a context that is not left"]["contexts"]


def cause_of(kind, text, threads=None):
    """Return the cause of a kind whose explanation has a text, and so many threads, as soon as there is one."""
    found = []

    def comes():
        why = rpc.why()
        causes = [each for each in why.causes if each.kind == kind and text in repr(each)]
        causes = [each for each in causes if threads in (None, each.threads)]
        assert json.loads(why.json())["causes"] or not causes
        found[:] = [(each, why.text()) for each in causes]
        return found

    return until(comes)[0]


FEW = GrpcRpcBackendOptions(num_worker_threads=2, window_messages=2, rpc_timeout=60)


def open_gate():
    GATE.set()


def test_a_pool_whose_threads_wait_for_what_a_request_would_do_that_waits_for_a_thread(closed_gate):
    with in_process_cluster("a", "b", options=FEW) as (a, b), a.use():
        answers = [rpc.rpc_async("b", hold), rpc.rpc_async("b", hold)]
        until(lambda: b.threads.functions.counts()["running"] == 2)
        answers.append(rpc.rpc_async("b", open_gate))
        cause, text = cause_of("event", "2 of 2 threads are busy", threads=2)  # one may still be on its way to the gate
        assert (cause.worker, cause.at.line) == ("b", hold.__code__.co_firstlineno + 1)
        assert "waits for a thread" in text and f"{cause.at.file}:{cause.at.line} (2 threads)" in text
        GATE.set()
        assert [each.wait() for each in answers] == [1, 1, None]


def send_many(answers):
    for _ in range(6):
        answers.append(rpc.rpc_async("b", hold))


def test_a_full_window_leads_to_the_functions_that_keep_it_full(closed_gate, thread):
    with in_process_cluster("a", "b", options=FEW) as (a, _), a.use():
        answers = []
        thread(a.new_context().run, send_many, answers)
        cause, text = cause_of("event", "waits for room on the way to 'b' for the call of hold")
        assert (cause.worker, cause.at.line) == ("b", hold.__code__.co_firstlineno + 1)
        assert f"send_many at {__file__}" in text and "2 of 2 threads are busy" in text
        GATE.set()
        until(lambda: len(answers) == 6)
        assert {each.wait() for each in answers} == {1}


@pytest.mark.parametrize("reduce", [None, "sum"])
def test_a_call_of_a_mesh_leads_to_the_function_below_other_workers(closed_gate, thread, reduce):
    names = [f"w{number}" for number in range(8)]
    with in_process_cluster(*names) as agents, agents[0].use():
        calling = thread(agents[0].new_context().run, lambda: rpc.mesh().call(hold_at, ("w7",), reduce=reduce))
        cause, text = cause_of("event", "of hold_at on worker 'w1' and 6 below it")
        assert (cause.worker, cause.at.function, cause.waiting) == ("w7", "hold_at", ["w0", "w1"]), text
        GATE.set()
        calling.join()


def test_a_slow_link_is_told_with_what_is_on_the_way(monkeypatch):
    with in_process_cluster("a", "b") as (a, _), a.use():
        rpc.rpc_sync("b", abs, (-1,))
        dialed = a.peers.at(1).link.dialed
        send, late = dialed.small.send, []

        def send_slowly(parts, size, handle):
            if size < 50_000:
                return send(parts, size, handle)
            late.append(b"".join(parts))
            handle.taken(None)
            return True

        monkeypatch.setattr(dialed.small, "send", send_slowly)
        answers = [rpc.rpc_async("b", len, (b"x" * 60_000,)) for _ in range(2)]
        cause, text = cause_of("link", "on the way between 'a' and 'b'")
        assert cause.worker == "b" and "120," in cause.text and f"{cause.text} (2 calls)" in text
        for frame in late:
            send([frame], 60_000, None)
        assert [answer.wait() for answer in answers] == [60_000, 60_000]


def test_a_rank_that_is_missing_in_init_rpc_is_named(monkeypatch, outside_a_job, port, caplog):
    monkeypatch.setattr(notices, "FIRST_SECONDS", 0.0)
    options = GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", init_timeout=1.0)
    caplog.set_level(logging.WARNING, "telegrad.rpc")
    with pytest.raises(RendezvousError, match=r"rank.* 1"):
        rpc.init_rpc("a", rank=0, world_size=2, rpc_backend_options=options)
    assert any("rank" in record.getMessage() and "1" in record.getMessage() for record in caplog.records)
