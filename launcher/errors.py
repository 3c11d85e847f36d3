"""What ``spawn`` raises when a process fails, with PyTorch's names and attributes; and what ``launch`` raises."""


class LogDirError(OSError):
    """The logs of a job cannot be written where they should go."""


class ProcessException(Exception):
    """A spawned process failed: ``error_index`` is its number, ``error_pid`` (also ``pid``) its process id."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg, error_index, pid)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = self.pid = pid

    def __str__(self) -> str:
        return self.msg


class ProcessRaisedException(ProcessException):
    """The function raised; the message holds the child's traceback."""


class ProcessExitedException(ProcessException):
    """The process ended with ``exit_code`` (minus the number, for a signal; then ``signal_name`` says which)."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.args = (msg, error_index, error_pid, exit_code, signal_name)
        self.exit_code = exit_code
        self.signal_name = signal_name
