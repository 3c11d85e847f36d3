"""Policy of a thread pool: whether a task waits for a thread that runs already, or gets one of its own.

To wake a thread costs more than most tasks, and threads that run at the same time contend for the interpreter. So a new task
waits for a thread that runs already in three cases:

* The thread has begun its task a moment ago.
* The thread *lingers*: it has ended its task, and looks for the next one before it idles.
* Another task came a moment ago.

A look after a moment checks on tasks that wait although there is a place: if the tasks that run take long, as many more
threads run. A thread whose task was short leaves the tasks that wait to another thread, if that has begun tasks meanwhile.
"""

from __future__ import annotations

MANY_REQUESTS = 8  # if more have not begun, answers may wait to be written together
RECENT_SECONDS = 100e-6  # since a thread has begun its task, or another task came
BACKLOG_LOOK_SECONDS = 1e-3  # after which it is looked whether the tasks that wait are taken
FEW_TASKS = 4  # tasks take long if fewer than these begin between two looks
QUICK_TASK_SECONDS = BACKLOG_LOOK_SECONDS / FEW_TASKS  # a thread that ran for longer takes the next task itself
MOST_DOZING = 4  # threads that sleep at a session: each keeps a stack, and few sessions have their next request soon


class PoolPolicy:
    """Decisions of one pool. Times are given, in monotonic seconds.

    Args:
        looks: the pool looks at tasks that wait. Otherwise they would wait for as long as the threads that run block, so none
            waits while there is a place.

    Attributes:
        began: when a thread last began a task; set by that thread.
        came: when a task last came.
        tasks: how many tasks have begun until now; counted by the threads.
    """

    __slots__ = ("_looks", "_seen", "began", "came", "tasks")

    def __init__(self, looks: bool) -> None:
        self._looks = looks
        self.began = self.came = 0.0
        self.tasks = self._seen = 0  # until now, and until the last look

    def waits(self, now: float, running: int, lingering: int) -> bool:
        """Take a new task into account; return whether it waits for a thread that runs already, although there is a place.

        Args:
            now: the time.
            running: how many threads run tasks or linger.
            lingering: how many of them linger. No time is noted then: the tasks are theirs.
        """
        if lingering or not self._looks:
            return self._looks
        latest, self.came = self.came, now
        return running > 0 and now - max(latest, self.began) < RECENT_SECONDS

    def yields(self, now: float, number: int, began: float) -> bool:
        """Return whether a thread that has ended a task leaves the tasks that wait to the other threads.

        Args:
            now: the time.
            number: how many tasks had begun when the thread began its last one, that one included.
            began: when it began that task.
        """
        return self._looks and self.tasks > number and now - began < QUICK_TASK_SECONDS

    def is_slow(self, now: float) -> bool:
        """Look at tasks that wait although there is a place; return whether those that run take long."""
        few, self._seen = self.tasks - self._seen < FEW_TASKS, self.tasks
        return few and now - self.began >= RECENT_SECONDS
