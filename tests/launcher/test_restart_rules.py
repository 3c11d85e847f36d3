"""Rules of restarts as options state them, and the limits of a job's restarts."""

import pytest
from telegrad.launcher.restarts.history import RestartHistory, WorkerFailure
from telegrad.launcher.restarts.rules import RestartPolicy, RestartRules, parse_restarts
from telegrad.launcher.spec import check_roles

NEVER, ONE, REST, ALL = RestartPolicy


@pytest.mark.parametrize(
    "options, rules",
    [
        ((None, None, None), RestartRules()),
        (("all", None, None), RestartRules(ALL)),
        (("one", 3, 60.0), RestartRules(ONE, most=3, within=60.0)),
        (("ps=never, trainer=one", None, None), RestartRules(NEVER, (("ps", NEVER), ("trainer", ONE)))),
        (("all,trainer=rest", 0, None), RestartRules(ALL, (("trainer", REST),), 0)),
        ((None, 3, None), RestartRules(ALL, most=3)),
        ((None, 0, None), RestartRules(NEVER, most=0)),
    ],
)
def test_options_are_read(options, rules):
    assert parse_restarts(*options) == rules


@pytest.mark.parametrize(
    "options, why",
    [
        (("sometimes", None, None), "write one of never, one, all, rest"),
        (("ps=", None, None), "write one of"),
        (("=one", None, None), "each role once"),
        (("ps=one,ps=all", None, None), "each role once"),
        (("one", -1, None), "--max-restarts must be 0 or more, you gave -1"),
        ((None, None, 60.0), "give --max-restarts, too"),
        (("one", None, 60.0), "give --max-restarts, too"),
        (("one", 3, 0.0), "above 0"),
        (("one", 3, -5.0), "above 0"),
        (("one", 3, float("nan")), "above 0"),
        (("never", 3, None), "disagree"),
        (("ps=never", 3, None), "disagree"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(options, why):
    with pytest.raises(ValueError) as raised:
        parse_restarts(*options)
    assert why.replace("one, all, rest", "one, rest, all") in str(raised.value)


def test_a_role_that_the_job_lacks_is_refused():
    with pytest.raises(ValueError, match="'trainr', which this job does not have; its roles are ps, trainer"):
        check_roles(parse_restarts("trainr=one", None, None), ["ps", "trainer0"])


@pytest.mark.parametrize("text", ["never", "all", "one,ps=never", "ps=never,trainer=one"])
def test_rules_are_shown_as_they_are_written(text):
    assert str(parse_restarts(text, None, None)) == text
    assert str(RestartRules(ONE, most=3, within=60)) == "one --max-restarts 3 --within 60"


@pytest.mark.parametrize("text, widest", [("ps=never,trainer=one", ONE), ("all,a=rest", REST), ("a=all", ALL)])
def test_a_worker_is_told_what_can_happen_to_its_peers(text, widest):
    assert parse_restarts(text, None, None).widest is widest


def test_where_all_are_started_again_any_worker_may_fail_at_once_only_three_times():
    history = RestartHistory(RestartRules(ALL), 4)
    failures = [WorkerFailure(rank, 1, "KeyError: 1", ran=1.0) for rank in (2, 0, 3)]
    restarts = [history.decide(failure, (0, 1, 2, 3), 0.0) for failure in failures]
    assert [each and each.delay for each in restarts] == [0.0, 0.1, None]
    assert history.refusal.startswith("a worker has failed 3 times in a row")


def test_restarts_are_limited_in_each_span_of_time():
    history = RestartHistory(RestartRules(ONE, most=2, within=10.0), 4)
    times = [0.0, 4.0, 9.0, 10.0, 11.0, 14.0]
    allowed = [bool(history.decide(WorkerFailure(rank, -9), (), at)) for rank, at in enumerate(times)]
    assert allowed == [True, True, False, True, False, True]


@pytest.mark.parametrize("policy, most", [(ALL, 10), (ONE, 40)])
def test_without_a_number_a_job_may_restart_so_often(policy, most):
    history = RestartHistory(RestartRules(policy), 4)
    assert sum(bool(history.decide(WorkerFailure(0, -9, ran=1.0), (), 0.0)) for _ in range(100)) == most


def test_the_time_between_restarts_grows_up_to_a_bound_and_begins_anew():
    history = RestartHistory(RestartRules(ONE, most=1000), 2)
    delays = [history.decide(WorkerFailure(0, -9, ran=20.0), (), 0.0).delay for _ in range(13)]
    assert delays == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]
    assert history.decide(WorkerFailure(1, -9), (), 0.0).delay == 0.0
    assert [history.decide(WorkerFailure(0, -9, ran=ran), (), 0.0).delay for ran in (60.0, 1.0)] == [0.0, 0.1]
