"""Decisions of a thread pool, as a table of situations: whether a task waits for a thread that runs already."""

import pytest
from telegrad.rpc.threads.pool import FEW_TASKS, QUICK_TASK_SECONDS, RECENT_SECONDS, PoolPolicy

NOW, LONG = 100.0, 1.0
SOON = RECENT_SECONDS / 2

WAITS = {  # threads that run, those of them that linger; seconds since a thread began and a task came; does the task wait?
    "no thread runs": (0, 0, LONG, LONG, False),
    "no thread runs, and another task came just now": (0, 0, LONG, SOON, False),
    "the thread that runs has just begun": (1, 0, SOON, LONG, True),
    "another task came just now": (1, 0, LONG, SOON, True),
    "the thread runs on, and no task came lately": (1, 0, LONG, LONG, False),
    "a thread lingers": (1, 1, LONG, LONG, True),
}


@pytest.mark.parametrize(("running", "lingering", "began", "came", "waits"), WAITS.values(), ids=WAITS)
def test_whether_a_task_waits(running, lingering, began, came, waits):
    for looks in (True, False):
        policy = PoolPolicy(looks)
        policy.began, policy.came = NOW - began, NOW - came
        assert policy.waits(NOW, running, lingering) is (waits and looks)


def test_tasks_that_follow_closely_wait_one_after_another():
    policy = PoolPolicy(True)
    assert [policy.waits(NOW + step * SOON, 1, 0) for step in range(4)] == [False, True, True, True]


SLOW = {  # tasks that began since the last look, seconds since a thread began one; are they slow?
    "none began": (0, LONG, True),
    "a few began, the last long ago": (FEW_TASKS - 1, LONG, True),
    "a few began, the last just now": (FEW_TASKS - 1, SOON, False),
    "enough began": (FEW_TASKS, LONG, False),
}


@pytest.mark.parametrize(("tasks", "began", "slow"), SLOW.values(), ids=SLOW)
def test_whether_more_threads_run_after_a_look(tasks, began, slow):
    policy = PoolPolicy(True)
    policy.tasks = 7
    policy.is_slow(NOW)
    policy.tasks += tasks
    policy.began = NOW - began
    assert policy.is_slow(NOW) is slow


LEAVES = {  # tasks that others have begun since, seconds that the task took; does its thread leave what waits to them?
    "quick, and others begin tasks": (1, QUICK_TASK_SECONDS / 2, True),
    "quick, and no other thread begins any": (0, QUICK_TASK_SECONDS / 2, False),
    "long": (3, QUICK_TASK_SECONDS * 2, False),
}


@pytest.mark.parametrize(("others", "took", "leaves"), LEAVES.values(), ids=LEAVES)
def test_whether_a_thread_leaves_tasks_to_others(others, took, leaves):
    for looks in (True, False):
        policy = PoolPolicy(looks)
        policy.tasks = 7 + others
        assert policy.yields(NOW, 7, NOW - took) is (leaves and looks)
