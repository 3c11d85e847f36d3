"""Causes of waits, concluded from made-up observations, in any order."""

import itertools
import json
from dataclasses import replace

import pytest
from telegrad.rpc.observing.causes import explain
from telegrad.rpc.observing.graphs import blocked, cycles, follow, ways
from telegrad.rpc.observing.records import (
    Observation,
    ObservedCall,
    ObservedFrame,
    ObservedGathering,
    ObservedLink,
    ObservedReference,
    ObservedRequest,
    ObservedThread,
    ObservedWait,
)

NUMBERS = {"a": 0, "b": 1, "c": 2}
LOCK = 77


def worker(name, **rest):
    number = NUMBERS[name]
    return Observation(name, number, number, host="h", process_id=100 + number, **rest)


def call(number, to, what="", state="written", calls=()):
    return ObservedCall(number, to, what or f"the call of f{number} on {to!r}", 3.0, 60.0, state, list(calls))


def request(sender, number, state="running", calls=(), what=""):
    return ObservedRequest(sender, NUMBERS[sender], number, what or f"f{number}", state, False, list(calls))


def thread(ident, wait=None, serves=(), line=0, main=False, holds=(), kind="thread"):
    at = ObservedFrame("train.py", line or ident, f"f{ident}")
    waits = wait is not None and wait.kind in ("future", "shutdown")
    return ObservedThread(
        ident, f"t{ident}", [at], waits, serves=list(serves), kind=kind, main=main, at=at, wait=wait, holds=list(holds)
    )


def calls(*ids):
    return ObservedWait("future", calls=list(ids))


def explained(*observations):
    """Return the explanation, which must not depend on the order of the observations."""
    found = [explain(each) for each in itertools.permutations(observations)]
    assert all(each.causes == found[0].causes and each.text() == found[0].text() for each in found)
    return found[0]


def worst(*observations):
    return explained(*observations).causes[0]


def test_a_cycle_of_calls_over_three_workers_is_a_deadlock():
    ring = {"a": "b", "b": "c", "c": "a"}
    before = {to: name for name, to in ring.items()}
    observations = [
        worker(
            name,
            calls=[call(NUMBERS[name] + 10, to)],
            requests=[request(before[name], NUMBERS[before[name]] + 10)],
            threads=[
                thread(
                    20 + NUMBERS[name], calls(NUMBERS[name] + 10), (NUMBERS[before[name]], NUMBERS[before[name]] + 10)
                )
            ],
        )
        for name, to in ring.items()
    ]
    (cause,) = explained(*observations).causes
    assert (cause.kind, cause.severity, cause.workers) == ("deadlock", "deadlock", ["a", "b", "c"])
    assert [(step.worker, step.at.line) for step in cause.chain] == [("a", 20), ("b", 21), ("c", 22)]
    text = explained(*observations).text()
    assert "deadlock over 'a', 'b' and 'c'" in text and "in f21 at train.py:21 waits for the call of f11 on 'c'" in text


def held(holds=(LOCK,), owner=0):
    wait = ObservedWait("lock", "self.lock", LOCK, thread=owner)
    return [
        worker("a", calls=[call(1, "b")], threads=[thread(5, calls(1), main=True)]),
        worker(
            "b",
            calls=[call(2, "a")],
            requests=[request("a", 1)],
            threads=[thread(6, wait, (0, 1)), thread(7, calls(2), main=True, holds=holds)],
        ),
    ]


def test_the_holder_of_a_lock_is_inferred_and_said_to_be():
    at_a, at_b = held()
    busy = worker("a", calls=at_a.calls, requests=[request("b", 2)], threads=[*at_a.threads, thread(9, None, (1, 2))])
    (cause,) = explained(busy, at_b).causes
    assert (cause.kind, cause.worker, cause.at.line, cause.waiting) == ("computes", "a", 9, ["b"])
    (step,) = [each for each in cause.chain if each.inferred]
    assert "lock self.lock, which 't7' of 'b' holds (inferred" in step.text


def test_a_lock_that_knows_its_owner_needs_no_inference():
    at_a, at_b = held((), owner=7)
    causes = explained(at_a, at_b).causes
    assert not any(step.inferred for cause in causes for step in cause.chain)
    assert any("held by 't7' of 'b'" in step.text for cause in causes for step in cause.chain)


def test_a_lock_without_a_known_holder_is_the_cause():
    cause = worst(*held(()))
    assert (cause.kind, cause.worker, cause.at.line) == ("lock", "b", 6) and "holder is not known" in cause.text


def test_a_lock_for_which_another_worker_of_the_process_saw_a_thread_wait_is_no_step():
    """Workers of one process look at its threads one after the other: here ``a`` before ``b``."""
    starting = thread(6, ObservedWait("lock", "self._lock", LOCK))
    serving = thread(6, ObservedWait("event", "GATE"), (0, 1))
    at_a = worker("a", calls=[call(1, "b")], threads=[starting, thread(5, holds=(LOCK,))])
    at_b = replace(worker("b", requests=[request("a", 1)], threads=[serving, thread(5)]), process_id=at_a.process_id)
    (cause,) = explained(at_a, at_b).causes
    assert (cause.kind, cause.worker, cause.waiting) == ("event", "b", ["a"])


@pytest.mark.parametrize(
    ("wait", "kind", "severity"),
    [
        (None, "computes", "busy"),
        (ObservedWait("sleep"), "sleeps", "busy"),
        (ObservedWait("queue", "q"), "queue", "stuck"),
        (ObservedWait("event", "gate"), "event", "stuck"),
        (ObservedWait("condition", "changed"), "condition", "stuck"),
        (ObservedWait("socket", "input"), "input", "stuck"),
        (ObservedWait("future"), "future", "stuck"),
    ],
)
def test_a_callee_is_named_with_its_line(wait, kind, severity):
    cause = worst(
        worker("a", calls=[call(1, "b")], threads=[thread(5, calls(1), main=True)]),
        worker("b", requests=[request("a", 1)], threads=[thread(6, wait, (0, 1))]),
    )
    assert (cause.kind, cause.severity, cause.worker, cause.at.line, cause.waiting) == (kind, severity, "b", 6, ["a"])
    assert [step.worker for step in cause.chain] == ["a"]


def test_a_full_pool_is_seen_through_to_what_fills_it():
    cause = worst(
        worker("a", calls=[call(number, "b") for number in range(4)], threads=[thread(5, calls(3), main=True)]),
        worker(
            "b",
            pool_threads=3,
            pool_busy=3,
            pool_waiting=1,
            requests=[request("a", 0), request("a", 1), request("a", 2), request("a", 3, "waiting")],
            threads=[thread(10 + each, ObservedWait("event", "gate"), (0, each), line=8) for each in range(3)],
        ),
    )
    assert (cause.kind, cause.worker, cause.at.line) == ("event", "b", 8)
    assert any("3 of 3 threads are busy (requests that wait for one: 1)" in step.text for step in cause.chain)


def test_a_pool_of_which_one_thread_can_end_is_no_deadlock():
    lock = ObservedWait("lock", "x", LOCK)
    waiting = thread(10, calls(9), (0, 0), holds=[LOCK])
    observations = [
        worker("a", calls=[call(0, "b"), call(1, "b")]),
        worker(
            "b",
            pool_threads=2,
            pool_busy=2,
            pool_waiting=1,
            calls=[call(9, "b")],
            requests=[request("a", 0), request("a", 1), request("b", 9, "waiting")],
            threads=[waiting, thread(11, None, (0, 1))],
        ),
    ]
    assert [each.kind for each in explained(*observations).causes] == ["computes"]
    both = [waiting, thread(11, lock, (0, 1))]
    stuck = [observations[0], worker("b", **{**fields(observations[1]), "threads": both})]
    assert explained(*stuck).causes[0].kind == "deadlock"


def fields(seen):
    names = ("pool_threads", "pool_busy", "pool_waiting", "calls", "requests", "threads")
    return {name: getattr(seen, name) for name in names}


@pytest.mark.parametrize(
    ("state", "kind"), [("stopped", "stopped"), ("running", "interpreter"), ("gone", "lost"), ("", "silent")]
)
def test_a_worker_that_does_not_answer_is_the_cause(state, kind):
    silent = worker("b", error="no answer within 2 s", seen_by={"a": "connected"}, process_state=state)
    cause = worst(worker("a", calls=[call(1, "b")], threads=[thread(5, calls(1), main=True)]), silent)
    assert (cause.kind, cause.worker, cause.waiting) == (kind, "b", ["a"]) and "'a': connected" in cause.text


def test_the_worker_that_has_not_reached_a_barrier_is_named_with_its_line():
    cause = worst(
        worker(
            "a",
            calls=[call(1, "a")],
            requests=[request("a", 1, "parked"), request("b", 2, "parked")],
            gatherings=[ObservedGathering(["c"], [[0, 1], [1, 2]])],
            threads=[thread(5, calls(1), main=True)],
        ),
        worker("b", calls=[call(2, "a")], threads=[thread(6, calls(2), main=True)]),
        worker("c", threads=[thread(7, None, line=33, main=True)]),
    )
    assert (cause.kind, cause.worker, cause.at.line, cause.waiting) == ("computes", "c", 33, ["a", "b"])
    assert any("has not called _barrier" in step.text and step.worker == "c" for step in cause.chain)


def test_shutdown_waits_for_a_worker_that_has_not_called_it():
    leaving = [
        worker(name, in_shutdown=True, threads=[thread(5, ObservedWait("shutdown"), main=True)]) for name in "ab"
    ]
    cause = worst(*leaving, worker("c", threads=[thread(7, ObservedWait("queue", "q"), main=True)]))
    assert (cause.kind, cause.worker, cause.at.line, cause.waiting) == ("queue", "c", 7, ["a", "b"])


def test_shutdown_and_barrier_of_different_workers_are_a_deadlock():
    cause = worst(
        worker(
            "a",
            calls=[call(1, "a")],
            requests=[request("a", 1, "parked")],
            gatherings=[ObservedGathering(["b"], [[0, 1]])],
            threads=[thread(5, calls(1), main=True)],
        ),
        worker("b", in_shutdown=True, threads=[thread(6, ObservedWait("shutdown"), main=True)]),
    )
    assert cause.kind == "deadlock" and cause.workers == ["a", "b"]


@pytest.mark.parametrize("serves", [(0, 9), ()])
@pytest.mark.parametrize("kind", [None, "sleep"])
def test_a_thread_of_a_worker_in_shutdown_may_still_call_the_barrier(kind, serves):
    late = thread(8, kind and ObservedWait(kind), serves, line=44)
    a = worker(
        "a",
        calls=[call(1, "a"), call(9, "b")],
        requests=[request("a", 1, "parked")],
        gatherings=[ObservedGathering(["b"], [[0, 1]])],
        threads=[thread(5, calls(1), main=True)],
    )
    shutdown = thread(6, ObservedWait("shutdown"), main=True)
    b = worker("b", in_shutdown=True, requests=[request("a", 9)], threads=[shutdown, late])
    found = explained(a, b)
    assert not any(each.kind == "deadlock" for each in found.causes)
    assert any(each.worker == "b" and each.at and each.at.line == 44 and "a" in each.waiting for each in found.causes)


def test_a_value_is_followed_to_the_request_that_makes_it():
    value = ObservedReference("1.2", "b", "", None, False, maker=[0, 2], requests=[[0, 3]])
    cause = worst(
        worker("a", calls=[call(3, "b", "to_here()")], threads=[thread(5, calls(3), main=True)]),
        worker(
            "b",
            owned=[value],
            requests=[request("a", 2), request("a", 3, "parked")],
            threads=[thread(6, ObservedWait("sleep"), (0, 2))],
        ),
    )
    assert (cause.kind, cause.worker, cause.at.line) == ("sleeps", "b", 6)
    assert any("until the value of 1.2 is made" in step.text for step in cause.chain)


@pytest.mark.parametrize(
    ("call_state", "link_state", "kind"),
    [("queued", "connected", "window"), ("written", "connected", "link"), ("written", "cut: no route", "link")],
)
def test_a_link_is_named_if_the_call_has_not_arrived(call_state, link_state, kind):
    link = ObservedLink("b", link_state, "tcp", 5000, 2, 7000, 3, 0)
    waiting = worker(
        "a", calls=[call(1, "b", state=call_state)], links=[link], threads=[thread(5, calls(1), main=True)]
    )
    cause = worst(waiting, worker("b"))
    assert cause.kind == kind and "'a'" in cause.text and cause.worker == "b"
    assert ("12,000 bytes" in cause.text) == (link_state == "connected")


def test_a_generator_that_is_suspended_in_a_with_statement_holds_its_lock():
    suspended = thread(9, ObservedWait("consumer", "a"), (0, 4), holds=[LOCK], kind="generator")
    causes = explained(
        worker("a", calls=[call(1, "b")], threads=[thread(5, calls(1), main=True)]),
        worker(
            "b", requests=[request("a", 1)], threads=[thread(6, ObservedWait("lock", "LOCK", LOCK), (0, 1)), suspended]
        ),
    ).causes
    assert causes[0].kind == "deadlock" and any("asks for the next item" in step.text for step in causes[0].chain)


def test_names_of_a_program_cannot_write_to_the_terminal():
    hostile = "\x1b[2J\n</script>\u202e"
    explanation = explained(
        worker("a", calls=[call(1, "b", hostile)], threads=[thread(5, calls(1), main=True)]),
        worker("b", requests=[request("a", 1, what=hostile)]),
    )
    text = explanation.text()
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b[2J\\n" in text
    assert json.loads(explanation.json())["causes"][0]["chain"]


def test_very_many_waits_have_a_short_explanation():
    number = 1000
    explanation = explain(
        [
            worker("a", calls=[call(each, "b") for each in range(number)]),
            worker(
                "b",
                requests=[request("a", each) for each in range(number)],
                threads=[thread(each, None, (0, each)) for each in range(number)],
            ),
        ]
    )
    assert len(explanation.causes) + explanation.left_out == number and len(explanation.text()) < 20_000


def test_records_that_contradict_one_another_are_explained_nevertheless():
    lying = worker(
        "b",
        calls=[call(7, "unknown"), call(8, "b", calls=[8, 9])],
        requests=[request("a", 1, "no such state"), request("b", 8, "parked", calls=[404])],
        owned=[ObservedReference("x", "b", "", None, False, maker=[5, 5], calls=[8], requests=[[]])],
        threads=[thread(6, calls(404), (9, 9), holds=[3]), thread(7, ObservedWait("lock", "", 9, thread=99))],
        gatherings=[ObservedGathering(["unknown"], [[1, 1]])],
        pool_waiting=5,
    )
    assert explained(worker("a", calls=[call(1, "b")]), lying).text()


def test_nothing_waits_if_nothing_does():
    assert explained(worker("a"), worker("b")).text().startswith("nothing waits")


def test_only_causes_that_concern_a_worker_are_told():
    observations = [
        worker("a", calls=[call(1, "b")], threads=[thread(5, calls(1), main=True)]),
        worker("b", requests=[request("a", 1)], threads=[thread(6, None, (0, 1))]),
        worker("c", threads=[thread(7, None, main=True)]),
    ]
    assert [each.worker for each in explain(observations, ["a"]).causes] == ["b"]
    assert [each.worker for each in explain(observations, ["c"]).causes] == ["c"]


# -- graphs

RING = {1: [2], 2: [3, 4], 3: [1], 4: [], 5: [1]}


def test_cycles_are_found_among_the_nodes_that_cannot_go_on():
    assert blocked(RING, (), [4]) == {1, 2, 3, 5}
    assert cycles(RING, blocked(RING, (), [4])) == [[1, 2, 3]]
    assert blocked(RING, {2}, [4]) == set()  # 2 waits for any of its two
    assert cycles({1: [1]}, {1}) == [[1]] and cycles({1: [2], 2: []}, {1, 2}) == []


def test_ways_lead_to_a_node():
    found = ways(RING, 3)
    assert list(found) == [3, 2, 1, 5] and follow(found, 5) == [5, 1, 2, 3]
