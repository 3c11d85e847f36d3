"""Errors of ``spawn``, with PyTorch's names and attributes, and of ``launch``."""


class LogDirError(OSError):
    """The logs of a job cannot be written."""


class ProcessException(Exception):
    """A spawned process failed.

    Args:
        pid: the process id.

    Attributes:
        msg: the text.
        error_index: the process's rank.
        error_pid: its process id; also ``pid``.
    """

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
    """The process was killed, or exited with a code other than 0.

    Args:
        msg: the text.
        error_index: the process's rank.
        error_pid: its process id.

    Attributes:
        exit_code: its exit code; minus the number, for a signal.
        signal_name: name of the signal that killed it, if one did.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.args = (msg, error_index, error_pid, exit_code, signal_name)
        self.exit_code = exit_code
        self.signal_name = signal_name


class NodeError(RuntimeError):
    """The launchers of a job on several nodes did not come together."""


class TokenError(NodeError, PermissionError):
    """A launcher has no token, or not the one of the job."""
