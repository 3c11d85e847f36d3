"""Restarts of single workers in the supervisor: no process, and times are numbers written here."""

import itertools
import random
import signal

import pytest
from telegrad.launcher.events import (
    Abandoned,
    Begin,
    Exited,
    Failed,
    Interrupted,
    Joined,
    Left,
    Restarting,
    Signal,
    Start,
    Wake,
)
from telegrad.launcher.restarts.history import RestartHistory
from telegrad.launcher.restarts.rules import RestartPolicy, RestartRules
from telegrad.launcher.restarts.workers import WorkerRestarts
from telegrad.launcher.supervisor import SETTLE_SECONDS, UNKILLABLE_SECONDS, JobPhase, Supervisor

TERM, KILL, INT = signal.SIGTERM, signal.SIGKILL, signal.SIGINT
NEVER, ONE, REST, ALL = RestartPolicy
GRACE = 3.0


class LaterRestarts(RestartHistory):
    """History that leaves a moment before the first restart, too, in which other events come."""

    def _delay(self, key, failure):
        return 0.1 + super()._delay(key, failure)


def begun(*policies, most=1000, within=None, together=False, history=LaterRestarts):
    """Return a supervisor that has begun, of workers with these policies, which have joined as w0, w1, ..."""
    history = history(RestartRules(ONE, most=most, within=within), len(policies))
    restarts = WorkerRestarts(policies, history, SETTLE_SECONDS, GRACE, UNKILLABLE_SECONDS)
    supervisor = Supervisor(len(policies), GRACE, restarts)
    supervisor.handle(Begin(), 0.0)
    for rank in range(len(policies)):
        supervisor.handle(Joined(rank, f"w{rank}", together), 0.1)
    return supervisor


def done(supervisor, event, now):
    """Return what the supervisor tells the engine to do; what it tells the user is left out."""
    return [each for each in supervisor.handle(event, now) if not isinstance(each, Restarting)]


def test_one_that_is_killed_is_started_again_and_the_others_go_on():
    supervisor = begun(ONE, ONE)
    (told,) = supervisor.handle(Exited(1, -KILL), 20.0)
    assert told.restart.ranks == (1,) and told.restart.failure.ran == 20.0
    assert supervisor.phase is JobPhase.RUNNING and supervisor.wake_at == 20.0 + told.restart.delay
    assert supervisor.handle(Wake(), 20.05) == []
    assert supervisor.handle(Wake(), supervisor.wake_at) == [Start(1)]
    assert supervisor.wake_at is None and supervisor.restarts.history.counts == {1: 1}
    for rank in (1, 0):
        assert supervisor.handle(Exited(rank, 0), 30.0) == []
    assert supervisor.phase is JobPhase.FINISHED and supervisor.exit_code == 0 and supervisor.cause is None


def test_the_first_restart_comes_at_once():
    supervisor = begun(ONE, REST, REST, history=RestartHistory)
    assert supervisor.handle(Exited(0, -KILL), 20.0)[1:] == [Start(0)]
    assert done(supervisor, Exited(1, -KILL), 20.0) == [Signal(2, TERM)]
    assert supervisor.handle(Exited(2, -TERM), 20.1) == [Start(1), Start(2)]
    assert done(supervisor, Exited(0, -KILL), 20.2) == [] and supervisor.wake_at == pytest.approx(20.3)


def test_the_last_one_may_fail_after_all_others_have_finished():
    supervisor = begun(ONE, ONE)
    supervisor.handle(Exited(0, 0), 20.0)
    supervisor.handle(Exited(1, 3), 21.0)
    assert supervisor.phase is JobPhase.RUNNING
    assert supervisor.handle(Wake(), 22.0) == [Start(1)], "one that finished is not started again"
    supervisor.handle(Exited(1, 0), 23.0)
    assert supervisor.phase is JobPhase.FINISHED and supervisor.exit_code == 0


PARTING = [(Left(0, True, True), Exited(0, 0)), (Left(2, True, True), Exited(2, 0))]


@pytest.mark.parametrize("policy", [ONE, REST])
def test_a_worker_that_had_left_with_all_others_ends_the_job_by_its_name(policy):
    supervisor = begun(policy, policy, policy, together=True)
    for rank in (0, 1):
        supervisor.handle(Left(rank, True, True), 20.0)
    supervisor.handle(Exited(0, 0), 20.1)
    assert supervisor.handle(Exited(1, -KILL), 20.2) == [Signal(2, TERM)]
    supervisor.handle(Exited(2, 0), 20.3)
    assert supervisor.cause.rank == 1 and supervisor.exit_code == 137
    assert "left the job with all others" in supervisor.restarts.history.refusal


@pytest.mark.parametrize("policy", [ONE, REST])
def test_so_does_one_whose_others_have_all_left_or_leave_while_it_is_to_be_started_again(policy):
    steps = [*PARTING[0][:1], *PARTING[1]]
    for order in itertools.permutations([*steps, Exited(1, -KILL)]):
        if order.index(PARTING[1][0]) > order.index(PARTING[1][1]):
            continue
        supervisor = begun(policy, policy, policy, together=True)
        for event in order:
            if supervisor.restarts.excused >= {1, 2} and event.rank == 2 and policy is REST:
                break  # it was asked to end: rank 0 has not left
            supervisor.handle(event, 20.0)
        else:
            assert supervisor.phase is JobPhase.ENDING, order
            assert supervisor.restarts.history.restarts == [] and supervisor.restarts.history.refusal
            supervisor.handle(Exited(0, 0), 20.1)
            assert supervisor.cause.rank == 1 and supervisor.restarts.history.counts.total() == 0


def test_a_worker_of_a_job_that_others_may_join_and_leave_is_started_again_though_it_is_the_last():
    supervisor = begun(ONE, ONE, together=False)
    supervisor.handle(Exited(0, 0), 20.0)
    supervisor.handle(Exited(1, -KILL), 20.0)
    assert supervisor.handle(Wake(), 21.0) == [Start(1)]


def test_one_that_is_killed_again_before_it_has_joined_is_not_left_alone_while_others_run_or_come():
    supervisor = begun(ONE, ONE, ONE, together=True)
    supervisor.handle(Exited(1, -KILL), 20.0)
    supervisor.handle(Wake(), 21.0)
    supervisor.handle(Exited(2, -KILL), 21.1)
    supervisor.handle(Exited(1, -KILL), 21.1)
    assert supervisor.handle(Wake(), 22.0) == [Start(1), Start(2)]
    supervisor.handle(Exited(0, 0), 22.1)
    supervisor.handle(Exited(1, -KILL), 22.2)
    assert supervisor.phase is JobPhase.ENDING, "rank 2 has not joined either, and waits for rank 0"


def test_rest_ends_those_of_higher_rank_and_starts_them_in_order_when_all_have_ended():
    supervisor = begun(REST, REST, REST, REST)
    supervisor.handle(Exited(3, 0), 19.0)
    told, *signals = supervisor.handle(Exited(1, 1), 20.0)
    assert told.restart.ranks == (1, 2) and signals == [Signal(2, TERM)], "of rank 0 lower, of rank 3 nothing runs"
    assert supervisor.handle(Wake(), 21.0) == [] and supervisor.wake_at == 23.0, "rank 1 waits for the end of rank 2"
    assert supervisor.handle(Wake(), 23.0) == [Signal(2, KILL)]
    assert supervisor.handle(Exited(2, -KILL), 23.1) == [Start(1), Start(2)]
    assert supervisor.restarts.history.counts == {1: 1, 2: 1}


@pytest.mark.parametrize("code", [0, 1, -TERM])
def test_one_that_was_ended_by_rest_is_started_again_however_it_ends_and_whatever_its_own_policy(code):
    supervisor = begun(REST, NEVER)
    assert done(supervisor, Exited(0, 1), 20.0) == [Signal(1, TERM)]
    supervisor.handle(Failed(1, ("w0",)), 20.1)
    assert supervisor.handle(Exited(1, code), 20.2) == [Start(0), Start(1)]
    supervisor.handle(Exited(1, 3), 40.0)
    assert supervisor.phase is JobPhase.ENDING and supervisor.cause.rank == 1, "by itself it may not fail"


@pytest.mark.parametrize("ends", [(0, 1, 2), (1, 0, 2), (0, 2), (1, 2)])
def test_workers_that_are_all_started_again_meet_anew_unless_one_has_finished(ends):
    supervisor = begun(ONE, ONE, ONE)
    for rank in ends:
        supervisor.handle(Exited(rank, -KILL), 20.0)
    if len(ends) < 3:
        supervisor.handle(Exited(1 - ends[0], 0), 20.0)
    assert supervisor.restarts.history.rounds == (len(ends) == 3)
    supervisor = begun(REST, REST, REST)
    supervisor.handle(Exited(1, -KILL), 20.0)
    assert supervisor.restarts.history.rounds == 0
    supervisor.handle(Exited(0, -KILL), 20.0)
    assert supervisor.restarts.history.rounds == 1


def test_a_worker_that_reports_a_failure_and_hangs_is_ended_and_started_again():
    supervisor = begun(ONE, ONE)
    assert supervisor.handle(Failed(0), 20.0) == [] and supervisor.phase is JobPhase.RUNNING
    assert supervisor.handle(Wake(), 20.0 + SETTLE_SECONDS) == [Signal(0, TERM)]
    assert supervisor.handle(Wake(), 28.0) == [Signal(0, KILL)]
    assert done(supervisor, Exited(0, -KILL), 28.1) == []
    assert supervisor.handle(Wake(), 29.0) == [Start(0)]
    supervisor.handle(Exited(0, -TERM), 60.0)
    assert supervisor.restarts.waiting, "a signal of somebody else is a failure again"


def test_a_worker_that_reports_a_failure_and_succeeds_is_not_started_again():
    supervisor = begun(ONE, ONE)
    supervisor.handle(Failed(0), 20.0)
    supervisor.handle(Exited(0, 0), 21.0)
    assert supervisor.wake_at is None
    supervisor.handle(Exited(1, 0), 22.0)
    assert supervisor.phase is JobPhase.FINISHED and supervisor.exit_code == 0


@pytest.mark.parametrize("policy", [ONE, REST])
def test_a_worker_that_outlives_kill_ends_the_job(policy):
    supervisor = begun(REST, policy)
    supervisor.handle(Exited(0, 1) if policy is REST else Failed(1), 20.0)
    while supervisor.phase is JobPhase.RUNNING:
        supervisor.handle(Wake(), supervisor.wake_at)
    assert supervisor.phase is JobPhase.ENDING
    while supervisor.phase is not JobPhase.FINISHED:
        supervisor.handle(Wake(), supervisor.wake_at)
    assert supervisor.survivors and "outlived KILL" in supervisor.abandoned and supervisor.exit_code == 1


def test_a_survivor_that_fails_because_of_the_loss_is_started_again_in_every_order():
    for order in itertools.permutations([Exited(1, -KILL), Failed(0, ("w1",)), Exited(0, 1)]):
        if order.index(Failed(0, ("w1",))) > order.index(Exited(0, 1)):
            continue
        supervisor, now = begun(ONE, ONE, ONE), 20.0
        for event in order:
            supervisor.handle(event, now := now + 0.01)
        assert supervisor.phase is JobPhase.RUNNING
        assert supervisor.handle(Wake(), 25.0) == [Start(0), Start(1)]


def test_one_whose_role_is_never_ends_the_job_and_the_killed_worker_is_named():
    supervisor = begun(NEVER, ONE)
    supervisor.handle(Exited(1, -KILL), 20.0)
    supervisor.handle(Failed(0, ("w1",)), 20.01)
    supervisor.handle(Exited(0, 1), 20.02)
    assert supervisor.phase is JobPhase.FINISHED and supervisor.cause.rank == 1 and supervisor.exit_code == 137


def test_the_cause_is_the_one_that_is_not_started_again_and_none_that_waits_for_its_restart():
    supervisor, now = begun(ONE, ONE, ONE), 1.0
    for _ in range(2):
        supervisor.handle(Exited(1, -signal.SIGSEGV), now)
        now += 0.5
        assert supervisor.handle(Wake(), now) == [Start(1)]
    supervisor.handle(Exited(0, -KILL), now)
    supervisor.handle(Exited(1, -signal.SIGSEGV), now + 0.05)
    assert supervisor.phase is JobPhase.ENDING
    supervisor.handle(Exited(2, -TERM), now + 0.1)
    assert supervisor.cause.rank == 1 and "3 times in a row" in supervisor.restarts.history.refusal


def test_it_does_not_wait_for_the_replacement_of_the_worker_that_it_blames():
    supervisor = begun(NEVER, ONE)
    supervisor.handle(Exited(1, -KILL), 20.0)
    assert supervisor.handle(Wake(), 21.0) == [Start(1)]
    supervisor.handle(Joined(1, "w1"), 21.5)
    supervisor.handle(Failed(0, ("w1",)), 22.0)
    assert supervisor.handle(Exited(0, 1), 22.1) == [Signal(1, TERM)]
    supervisor.handle(Exited(1, -TERM), 22.2)
    assert supervisor.cause.rank == 0


@pytest.mark.parametrize("code, error", [(1, "ValueError: a"), (-signal.SIGSEGV, "")])
def test_a_failure_at_once_each_time_ends_the_job_soon(code, error):
    supervisor, now, starts = begun(ONE, ONE), 1.0, 1
    while supervisor.phase is JobPhase.RUNNING:
        if error:
            supervisor.handle(Failed(0, (), f"{error} {now}"), now)
        supervisor.handle(Exited(0, code), now)
        if supervisor.phase is JobPhase.RUNNING:
            starts += supervisor.handle(Wake(), now := supervisor.wake_at) == [Start(0)]
            now += 1.0
    assert starts == 3 and now < 5.0 and supervisor.cause.rank == 0
    assert "3 times in a row" in supervisor.restarts.history.refusal


@pytest.mark.parametrize(
    "failures",
    [
        [(1, "ValueError", (), 1.0), (1, "KeyError", (), 1.0)],
        [(1, "ValueError", (), 11.0)],
        [(1, "WorkerLostError", ("w1",), 1.0)],
        [(-KILL, "", (), 1.0)],
    ],
    ids=["others each time", "later", "because of a loss", "from outside"],
)
def test_other_failures_are_counted_only(failures):
    supervisor, now = begun(ONE, ONE, most=12), 0.0
    for code, error, lost, ran in itertools.islice(itertools.cycle(failures), 12):
        now += ran
        supervisor.handle(Failed(0, lost, error), now)
        supervisor.handle(Exited(0, code), now)
        assert supervisor.phase is JobPhase.RUNNING
        now = supervisor.wake_at
        assert supervisor.handle(Wake(), now) == [Start(0)]
    supervisor.handle(Exited(0, -KILL), now + 1.0)
    assert supervisor.phase is JobPhase.ENDING and "--max-restarts" in supervisor.restarts.history.refusal


@pytest.mark.parametrize("event", [Interrupted(INT), Abandoned("another node has ended")], ids=repr)
def test_nothing_is_started_after_the_end_was_asked_for(event):
    supervisor = begun(ONE, ONE, ONE)
    supervisor.handle(Exited(1, -KILL), 20.0)
    sent = INT if isinstance(event, Interrupted) else TERM
    assert supervisor.handle(event, 20.01) == [Signal(0, sent), Signal(2, sent)]
    assert supervisor.handle(Wake(), 21.0) == []
    supervisor.handle(Exited(0, -sent), 21.1)
    supervisor.handle(Exited(2, -sent), 21.1)
    assert supervisor.phase is JobPhase.FINISHED and supervisor.exit_code != 0 and supervisor.cause is None


def test_an_interruption_while_nothing_runs_ends_the_job_at_once():
    supervisor = begun(ONE)
    supervisor.handle(Exited(0, -KILL), 20.0)
    assert supervisor.handle(Interrupted(INT), 20.01) == []
    assert supervisor.phase is JobPhase.FINISHED and supervisor.exit_code == 130


def test_a_settling_failure_that_vanishes_lets_restarts_go_on():
    supervisor = begun(NEVER, ONE)
    supervisor.handle(Failed(0), 20.0)
    assert supervisor.phase is JobPhase.SETTLING
    assert supervisor.handle(Exited(1, -KILL), 20.1) == []
    assert done(supervisor, Exited(0, 0), 20.2) == [] and supervisor.phase is JobPhase.RUNNING
    assert supervisor.handle(Wake(), 21.0) == [Start(1)]


def test_under_all_the_job_ends_for_its_next_round():
    supervisor = begun(ALL, ALL)
    assert supervisor.handle(Exited(1, -KILL), 20.0) == [Signal(0, TERM)]


def test_any_history_keeps_its_promises():
    """Workers end at random and hang at random; each schedule ends, starts no worker twice, signals none that has ended."""
    for seed in range(400):
        print(f"seed {seed}")
        rng = random.Random(seed)
        policies = [rng.choice([NEVER, ONE, ONE, REST, REST]) for _ in range(rng.randint(1, 6))]
        history = rng.choice([RestartHistory, LaterRestarts])
        supervisor, now = begun(*policies, most=rng.choice([0, 3, 30]), history=history), 0.0
        alive, starts = set(range(len(policies))), 0
        stubborn = {rank for rank in alive if rng.random() < 0.3}
        dying = {}
        for _ in range(5000):
            if supervisor.phase is JobPhase.FINISHED:
                break
            now += rng.choice([0.01, 0.2, 0.7, 12.0])
            event = _next_event(rng, supervisor, alive, dying, now)
            if isinstance(event, Exited):
                alive.discard(event.rank)
                dying.pop(event.rank, None)
            for told in supervisor.handle(event, now):
                match told:
                    case Start(rank):
                        assert rank not in alive
                        alive.add(rank)
                        starts += 1
                    case Signal(rank, signum):
                        assert rank in alive
                        if signum == KILL or rank not in stubborn:
                            dying[rank] = -signum
        assert supervisor.phase is JobPhase.FINISHED and bool(alive) == supervisor.survivors
        assert starts == supervisor.restarts.history.counts.total()
        reasons = (supervisor.cause, supervisor.interrupted_by, supervisor.abandoned or None)
        assert (supervisor.exit_code == 0) == (reasons == (None, None, None))


def _next_event(rng, supervisor, alive, dying, now):
    if supervisor.wake_at is not None and now >= supervisor.wake_at:
        return Wake()
    if dying and rng.random() < 0.7:
        return Exited(*rng.choice(sorted(dying.items())))
    chance = rng.random()
    if alive and chance < 0.4:
        return Exited(rng.choice(sorted(alive)), rng.choice([0, 0, 1, -KILL]))
    if alive and chance < 0.5:
        return Failed(rng.choice(sorted(alive)), (f"w{rng.randrange(6)}",) * rng.randint(0, 1))
    return Interrupted(INT) if chance > 0.99 else Wake()
