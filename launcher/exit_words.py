"""Words on how a process ended."""

import signal

_MEANINGS = {
    signal.SIGKILL: "killed, perhaps by the out-of-memory killer or kill -9",
    signal.SIGSEGV: "a crash in native code",
    signal.SIGABRT: "native code aborted, its last message is in the log",
    signal.SIGBUS: "a crash in native code, or shared memory (/dev/shm) is full",
    signal.SIGTERM: "somebody other than the launcher asked it to end",
    signal.SIGPIPE: "the reader of its output went away",
}


def signal_name(signum: int) -> str:
    """Return a signal's name and number: ``SIGKILL (9)``."""
    try:
        return f"{signal.Signals(signum).name} ({signum})"
    except ValueError:  # real-time signals have no names of their own
        return f"signal {signum}"


def describe_exit(code: int) -> str:
    """Return an exit code (minus the number, for a signal) in words."""
    if code >= 0:
        return f"exited with code {code}"
    meaning = _MEANINGS.get(signal.Signals(-code)) if -code in signal.valid_signals() and -code < 32 else None
    return f"died of {signal_name(-code)}" + (f": {meaning}" if meaning else "")
