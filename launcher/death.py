"""End of a worker's process."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Death:
    """End of a process: ``code`` is an exit code, or minus a signal's number; ``at`` is in monotonic seconds; ``ours`` says
    that the launcher sent that signal."""

    rank: int
    code: int
    at: float
    ours: bool

    @property
    def failed(self) -> bool:
        """Whether the worker failed by itself."""
        return self.code != 0 and not self.ours

    @property
    def by_foreign_signal(self) -> bool:
        """Whether something other than the launcher killed it."""
        return self.code < 0 and not self.ours
