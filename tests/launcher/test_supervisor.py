"""Supervisor as a state machine: no process, and times are numbers written here."""

import itertools
import random
import signal

import pytest
from telegrad.base.errors import IllegalEventError
from telegrad.launcher.events import Abandoned, Begin, Exited, Failed, Interrupted, Joined, Left, Signal, Start, Wake
from telegrad.launcher.root_cause import SAME_TIME_SECONDS
from telegrad.launcher.supervisor import SETTLE_SECONDS, UNKILLABLE_SECONDS, JobPhase, Supervisor

TERM, KILL, INT, HUP = signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP


def begun(size, grace=3.0):
    supervisor = Supervisor(size, grace)
    assert supervisor.handle(Begin(), 0.0) == [Start(rank) for rank in range(size)]
    return supervisor


def test_a_job_whose_workers_succeed_finishes_with_the_last():
    supervisor = begun(2)
    assert supervisor.handle(Exited(1, 0), 1.0) == []
    assert supervisor.phase is JobPhase.RUNNING and supervisor.wake_at is None
    assert supervisor.handle(Exited(0, 0), 2.0) == []
    assert supervisor.phase is JobPhase.FINISHED
    assert supervisor.cause is None and supervisor.exit_code == 0
    assert [end.rank for end in supervisor.failures.exits] == [1, 0]


def test_the_first_failure_asks_the_living_to_end_and_later_kills_them():
    supervisor = begun(4)
    supervisor.handle(Exited(3, 0), 1.0)
    assert supervisor.handle(Exited(1, 5), 2.0) == [Signal(0, TERM), Signal(2, TERM)]
    assert supervisor.phase is JobPhase.ENDING and supervisor.wake_at == 5.0
    assert supervisor.handle(Wake(), 4.9) == []
    assert supervisor.handle(Exited(0, -TERM), 4.95) == []
    assert supervisor.handle(Wake(), 5.0) == [Signal(2, KILL)]
    assert supervisor.handle(Exited(2, -KILL), 5.1) == []
    assert supervisor.phase is JobPhase.FINISHED
    assert supervisor.cause.rank == 1 and supervisor.exit_code == 5
    assert [end.by_launcher for end in supervisor.failures.exits] == [False, False, True, True]


def test_a_second_failure_asks_nobody_again():
    supervisor = begun(3)
    supervisor.handle(Exited(0, 1), 1.0)
    assert supervisor.handle(Exited(1, 1), 2.0) == []
    assert supervisor.wake_at == 4.0, "the grace counts from the first failure"


@pytest.mark.parametrize("code, exit_code", [(1, 1), (77, 77), (-KILL, 137), (-signal.SIGSEGV, 139), (-TERM, 143)])
def test_the_exit_code_is_the_culprits(code, exit_code):
    supervisor = begun(1)
    supervisor.handle(Exited(0, code), 1.0)
    assert supervisor.exit_code == exit_code


def test_a_death_by_a_foreign_signal_outranks_an_error_that_was_seen_first():
    supervisor = begun(3)
    supervisor.handle(Exited(0, 1), 1.0)  # it lost worker 2, and exits before that one's exit is seen
    supervisor.handle(Exited(2, -KILL), 1.0 + SAME_TIME_SECONDS)
    assert supervisor.cause.rank == 2 and supervisor.exit_code == 137


def test_it_does_not_when_it_came_later():
    supervisor = begun(3)
    supervisor.handle(Exited(0, 1), 1.0)
    supervisor.handle(Exited(2, -KILL), 1.01 + SAME_TIME_SECONDS)
    assert supervisor.cause.rank == 0 and supervisor.exit_code == 1


def test_a_signal_that_we_sent_is_never_the_cause_but_another_is():
    supervisor = begun(3)
    supervisor.handle(Exited(0, 1), 1.0)
    supervisor.handle(Exited(1, -TERM), 1.1)
    assert supervisor.cause.rank == 0
    supervisor.handle(Exited(2, -signal.SIGSEGV), 1.2)
    assert supervisor.cause.rank == 2


def test_of_two_foreign_deaths_the_earlier_is_the_cause():
    supervisor = begun(3)
    for rank, at in ((2, 1.0), (0, 1.1)):
        supervisor.handle(Exited(rank, -KILL), at)
    assert supervisor.cause.rank == 2


@pytest.mark.parametrize("signum, sent", [(INT, INT), (TERM, TERM), (HUP, TERM), (signal.SIGPIPE, TERM)])
def test_an_interruption_is_passed_on_once_and_is_the_exit_code(signum, sent):
    supervisor = begun(2)
    assert supervisor.handle(Interrupted(signum), 1.0) == [Signal(0, sent), Signal(1, sent)]
    assert supervisor.handle(Exited(0, 1), 1.1) == []
    assert supervisor.handle(Exited(1, -sent), 1.2) == []
    assert supervisor.phase is JobPhase.FINISHED
    assert supervisor.cause is None and supervisor.exit_code == 128 + signum


def test_a_second_interruption_kills_at_once_and_a_third_does_nothing():
    supervisor = begun(2)
    supervisor.handle(Interrupted(INT), 1.0)
    assert supervisor.handle(Interrupted(INT), 1.1) == [Signal(0, KILL), Signal(1, KILL)]
    assert supervisor.handle(Interrupted(INT), 1.2) == []


def test_an_interruption_after_a_failure_kills_at_once_and_the_failure_stays_the_cause():
    supervisor = begun(2)
    supervisor.handle(Exited(0, 4), 1.0)
    assert supervisor.handle(Interrupted(INT), 1.1) == [Signal(1, KILL)]
    supervisor.handle(Exited(1, -KILL), 1.2)
    assert supervisor.cause.rank == 0 and supervisor.exit_code == 4 and supervisor.interrupted_by is None


def test_a_worker_that_outlives_kill_is_given_up():
    supervisor = begun(2, grace=0.0)
    supervisor.handle(Exited(0, 1), 1.0)
    assert supervisor.handle(Wake(), 1.0) == [Signal(1, KILL)]
    assert supervisor.wake_at == 1.0 + UNKILLABLE_SECONDS
    assert supervisor.handle(Wake(), supervisor.wake_at) == []
    assert supervisor.phase is JobPhase.FINISHED and supervisor.wake_at is None and supervisor.exit_code == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_in_every_order_of_deaths_the_killed_worker_is_the_cause(order):
    supervisor = begun(4)
    codes = {0: 1, 1: -KILL, 2: 1, 3: 0}
    for i, rank in enumerate(order):
        supervisor.handle(Exited(rank, codes[rank]), 1.0 + i / 10)
    assert supervisor.phase is JobPhase.FINISHED and supervisor.cause.rank == 1 and supervisor.exit_code == 137


@pytest.mark.parametrize("event", [Begin(), Exited(1, 0), Exited(2, 0), Joined(1, "late"), Failed(-1)], ids=repr)
def test_an_event_that_cannot_happen_is_an_error(event):
    supervisor = begun(2)
    supervisor.handle(Exited(1, 0), 1.0)
    with pytest.raises(IllegalEventError, match="cannot happen"):
        supervisor.handle(event, 2.0)


def test_nothing_happens_before_the_beginning_or_after_the_end():
    supervisor = Supervisor(1, grace=3.0)
    with pytest.raises(IllegalEventError, match="a job that is new"):
        supervisor.handle(Exited(0, 0), 0.0)
    supervisor.handle(Begin(), 0.0)
    supervisor.handle(Exited(0, 0), 1.0)
    with pytest.raises(IllegalEventError, match="a job that is finished"):
        supervisor.handle(Wake(), 2.0)


# Reports of workers.


def joined(*names):
    """Return a supervisor whose workers have joined a job under these names."""
    supervisor = begun(len(names))
    for rank, name in enumerate(names):
        supervisor.handle(Joined(rank, name), 0.1)
    return supervisor


def in_causal_orders(*chains):
    """Yield every order of events that keeps the order of each chain."""
    if not any(chains):
        yield []
    for i, chain in enumerate(chains):
        if chain:
            rest = [*chains[:i], chain[1:], *chains[i + 1 :]]
            yield from ([chain[0], *order] for order in in_causal_orders(*rest))


def play(supervisor, events, now=1.0):
    """Handle the events, a moment apart; in the end, workers that the supervisor signalled exit."""
    told = []
    for event in events:
        now += 0.01
        told += supervisor.handle(event, now)
    for rank in {each.rank for each in told} - {end.rank for end in supervisor.failures.exits}:
        supervisor.handle(Exited(rank, -TERM), now + 0.01)
    return supervisor


CULPRIT = [Failed(1), Left(1, shut_down=False, agreed=False), Exited(1, 1)]


@pytest.mark.parametrize("lost", [("w1",), ()], ids=["blames", "says nothing"])
def test_a_culprit_that_reports_is_the_cause_however_late_it_ends(lost):
    """The worker reports before it says goodbye, so its report comes before those of workers that failed because of it."""
    victims = [[Failed(rank, lost), Exited(rank, 1)] for rank in (0, 2)]
    for events in in_causal_orders(CULPRIT[1:], *victims):
        supervisor = play(joined("w0", "w1", "w2"), [CULPRIT[0], *events])
        assert supervisor.phase is JobPhase.FINISHED and supervisor.cause.rank == 1 and supervisor.exit_code == 1


@pytest.mark.parametrize("code", [-KILL, -signal.SIGSEGV, 3])
def test_a_silent_death_is_the_cause_in_whatever_order_it_is_seen(code):
    victims = [[Failed(rank, ("w1",)), Left(rank, shut_down=False, agreed=False), Exited(rank, 1)] for rank in (0, 2)]
    for events in in_causal_orders([Exited(1, code)], *victims):
        supervisor = play(joined("w0", "w1", "w2"), events)
        assert supervisor.cause.rank == 1 and supervisor.exit_code == (3 if code == 3 else 128 - code)


def test_blame_is_followed_along_a_chain_in_every_order():
    """Each worker failed because it lost the next; the last raised an error of its own."""
    names = ("a", "b", "c", "d")
    for order in itertools.permutations(range(4)):
        events = [Failed(rank, names[rank + 1 : rank + 2]) for rank in order] + [Exited(rank, 1) for rank in order]
        assert play(joined(*names), events).cause.rank == 3


def test_workers_that_blame_each_other_are_no_endless_circle():
    supervisor = joined("w0", "w1")
    events = [Failed(0, ("w1",)), Failed(1, ("w0",)), Exited(0, 1), Exited(1, 1)]
    assert play(supervisor, events).cause.rank in (0, 1) and supervisor.exit_code == 1


def test_a_blamed_worker_has_time_to_end_by_itself():
    supervisor = joined("w0", "w1", "w2")
    assert supervisor.handle(Failed(0, ("w1",)), 1.0) == supervisor.handle(Exited(0, 1), 1.1) == []
    assert supervisor.phase is JobPhase.SETTLING and supervisor.wake_at == 1.0 + SETTLE_SECONDS
    assert supervisor.handle(Exited(1, 3), 2.0) == [Signal(2, TERM)], "now the cause is known"
    supervisor.handle(Exited(2, -TERM), 2.1)
    assert supervisor.cause.rank == 1 and supervisor.exit_code == 3


def test_a_worker_that_has_failed_has_time_to_end_by_itself_also_if_another_node_gives_up_meanwhile():
    supervisor = joined("w0", "w1")
    supervisor.handle(Failed(1), 1.0)
    assert supervisor.handle(Abandoned("node 0 has failed, because it lost w1"), 1.1) == []
    assert supervisor.handle(Exited(1, 3), 1.2) == [Signal(0, TERM)]
    supervisor.handle(Exited(0, -TERM), 1.3)
    assert supervisor.cause.rank == 1 and supervisor.exit_code == 3 and not supervisor.abandoned


def test_a_node_without_a_failure_ends_at_once_when_another_gives_up():
    supervisor = joined("w0", "w1")
    assert supervisor.handle(Abandoned("node 0 has failed"), 1.0) == [Signal(0, TERM), Signal(1, TERM)]
    assert supervisor.abandoned == "node 0 has failed"


def test_but_not_for_ever_and_if_it_lives_on_it_is_not_the_cause():
    supervisor = joined("w0", "w1")
    supervisor.handle(Failed(0, ("w1",)), 1.0)
    supervisor.handle(Exited(0, 1), 1.1)
    assert supervisor.handle(Wake(), 1.0 + SETTLE_SECONDS) == [Signal(1, TERM)]
    supervisor.handle(Exited(1, -TERM), 7.0)
    assert supervisor.cause.rank == 0


def test_a_culprit_that_takes_too_long_to_end_is_ended_and_stays_the_cause():
    supervisor = joined("w0", "w1")
    supervisor.handle(Failed(1), 1.0)
    assert supervisor.handle(Wake(), 1.0 + SETTLE_SECONDS) == [Signal(0, TERM), Signal(1, TERM)]
    supervisor.handle(Failed(0), 7.0)  # because it was asked to end
    supervisor.handle(Exited(0, 1), 7.1)
    supervisor.handle(Exited(1, -TERM), 7.1)
    assert supervisor.cause.rank == 1 and supervisor.cause.by_launcher and supervisor.exit_code == 1


def test_a_worker_that_ends_without_shutdown_while_others_need_it_is_the_cause():
    supervisor = joined("w0", "w1")
    left = [Left(1, shut_down=False, agreed=False), Exited(1, 0), Failed(0, ("w1",)), Exited(0, 1)]
    assert play(supervisor, left).cause.rank == 1 and supervisor.exit_code == 1
    assert supervisor.failures.worker(1).ended_early


def test_a_worker_that_has_left_rpc_is_still_in_its_process_group():
    supervisor = joined("w0", "w1")
    group = [Joined(rank, f"w{rank}") for rank in range(2)]
    left = [Left(1, shut_down=True, agreed=True), Exited(1, 0), Failed(0, ("w1",)), Exited(0, 1)]
    assert play(supervisor, [*group, *left]).cause.rank == 1


def test_it_is_the_cause_also_if_its_end_takes_so_long_that_it_is_ended():
    supervisor = joined("w0", "w1")
    for event in [Left(1, shut_down=False, agreed=False), Failed(0, ("w1",)), Exited(0, 1)]:
        assert supervisor.handle(event, 1.0) == []
    assert supervisor.handle(Wake(), 1.0 + SETTLE_SECONDS) == [Signal(1, TERM)]
    supervisor.handle(Exited(1, -TERM), 7.0)
    assert supervisor.cause.rank == 1 and supervisor.exit_code == 1


def test_one_that_leaves_because_it_was_asked_to_end_is_not():
    supervisor = joined("w0", "w1")
    events = [Failed(0, ("w1",)), Exited(0, 1)]
    assert [supervisor.handle(event, 1.0) for event in events] == [[], []]
    supervisor.handle(Wake(), 1.0 + SETTLE_SECONDS)
    supervisor.handle(Left(1, shut_down=False, agreed=False), 6.5)
    supervisor.handle(Exited(1, -TERM), 7.0)
    assert supervisor.cause.rank == 0


def test_one_that_called_shutdown_is_not():
    supervisor = joined("w0", "w1")
    left = [Left(1, shut_down=True, agreed=False), Exited(1, 0), Failed(0, ("w1",)), Exited(0, 1)]
    assert play(supervisor, left).cause.rank == 0 and not supervisor.failures.worker(1).ended_early


def test_ending_without_shutdown_alone_ends_no_job():
    supervisor = play(joined("w0", "w1"), [Left(1, shut_down=False, agreed=False), Exited(1, 0), Exited(0, 0)])
    assert supervisor.phase is JobPhase.FINISHED and supervisor.cause is None and supervisor.exit_code == 0
    assert supervisor.failures.worker(0).ended_early and supervisor.failures.worker(1).ended_early


def test_a_crash_that_follows_a_reported_error_is_not_the_cause():
    supervisor = joined("w0", "w1")
    assert play(supervisor, [Failed(1), Exited(0, -signal.SIGABRT), Exited(1, 1)]).cause.rank == 1


def test_a_reported_error_of_a_worker_that_succeeds_ends_nothing():
    supervisor = joined("w0", "w1")
    supervisor.handle(Failed(1), 1.0)
    supervisor.handle(Exited(1, 0), 1.1)
    assert supervisor.phase is JobPhase.RUNNING and supervisor.wake_at is None


def test_an_interruption_while_a_failure_settles_ends_all_and_the_failure_stays_the_cause():
    supervisor = joined("w0", "w1")
    supervisor.handle(Failed(1), 1.0)
    assert supervisor.handle(Interrupted(INT), 1.1) == [Signal(0, INT), Signal(1, INT)]
    play(supervisor, [Exited(0, -INT), Exited(1, 1)])
    assert supervisor.cause.rank == 1 and supervisor.interrupted_by is None


def test_the_loss_of_a_worker_that_the_launcher_does_not_know_blames_nobody():
    supervisor = joined("w0")
    assert play(supervisor, [Failed(0, ("parent",)), Exited(0, 1)]).cause.rank == 0


def test_the_culprit_is_found_in_a_random_tree_of_blame():
    """Each worker but one failed because it lost another that failed before; exits are seen in any order."""
    for seed in range(300):
        print(f"seed {seed}")
        rng = random.Random(seed)
        ranks = rng.sample(range(8), 8)
        lost = {rank: f"w{rng.choice(ranks[:i])}" for i, rank in enumerate(ranks) if i}
        code = rng.choice([1, 3, -KILL, 0])
        chains = [[Failed(rank, (lost[rank],)), Exited(rank, 1)] for rank in ranks[1:]] + [[Exited(ranks[0], code)]]
        if code == 1:
            chains[-1].insert(0, Failed(ranks[0]))
        events = []
        while chains := [chain for chain in chains if chain]:
            events.append(rng.choice(chains).pop(0))
        supervisor = play(joined(*(f"w{rank}" for rank in range(8))), events)
        assert supervisor.phase is JobPhase.FINISHED and supervisor.cause.rank == ranks[0] and supervisor.exit_code != 0


def test_any_history_ends_in_time_and_signals_no_dead_worker():
    """Workers end at random, some only because of KILL, and some not even then."""
    for seed in range(300):
        print(f"seed {seed}")
        rng = random.Random(seed)
        size, grace = rng.randint(1, 6), rng.choice([0.0, 1.0, 3.0])
        supervisor, alive, dying, now = begun(size, grace), set(range(size)), {}, 0.0
        stubborn, stuck = {r for r in alive if rng.random() < 0.3}, {r for r in alive if rng.random() < 0.1}
        since = {}  # phase -> when it was entered
        while supervisor.phase is not JobPhase.FINISHED:
            now += rng.choice([0.01, 0.2, 0.7])
            event = _next_event(rng, alive, dying, supervisor, now)
            if isinstance(event, Exited):
                alive.discard(event.rank)
                dying.pop(event.rank, None)
            for told in supervisor.handle(event, now):
                assert told.rank in alive
                if told.rank not in (stuck if told.signum == KILL else stubborn | stuck):
                    dying[told.rank] = -told.signum
            since.setdefault(supervisor.phase, now)
        assert {end.rank for end in supervisor.failures.exits} == set(range(size)) - alive
        if alive:
            assert now - since[JobPhase.KILLING] >= UNKILLABLE_SECONDS
        if JobPhase.ENDING in since:
            assert now - since[JobPhase.ENDING] <= grace + UNKILLABLE_SECONDS + 2 * 0.7, (
                "each deadline is late by at most a step"
            )
        failed = any(end.failed for end in supervisor.failures.exits)
        assert (supervisor.exit_code != 0) == (failed or supervisor.interrupted_by is not None)


def _next_event(rng, alive, dying, supervisor, now):
    """Return the next event. The clock has precedence, as in an engine, whose loop looks at it every time."""
    if supervisor.wake_at is not None and now >= supervisor.wake_at:
        return Wake()
    if dying and rng.random() < 0.7:
        return Exited(*rng.choice(sorted(dying.items())))
    chance = rng.random()
    if supervisor.phase is JobPhase.RUNNING and alive and chance < 0.4:
        return Exited(rng.choice(sorted(alive)), rng.choice([0, 0, 1, -KILL]))
    return Interrupted(INT) if chance < 0.45 else Wake()
