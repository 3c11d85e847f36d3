"""Signals that ask a launcher to end: kept in a socket, also between two selectors' loops."""

import selectors
import signal
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """Signals that this process has got and not handled.

    Args:
        stream: receives a byte for each, its number; None if this process gets none here.
        caught: numbers of those that count.
    """

    def __init__(self, stream: socket.socket | None, caught: Collection[int]) -> None:
        self._stream = stream
        self._caught = caught

    @contextmanager
    def to(self, selector: selectors.BaseSelector, tell: Callable[[int], None]) -> Iterator[None]:
        """Call ``tell`` from the selector's loop for each signal."""
        if self._stream is None:
            yield
            return

        def pass_on() -> None:
            for signum in self._take():
                tell(signum)

        selector.register(self._stream, selectors.EVENT_READ, pass_on)
        try:
            yield
        finally:
            selector.unregister(self._stream)

    def wait(self, seconds: float) -> int | None:
        """Return the next signal; None if none comes within ``seconds``."""
        with selectors.DefaultSelector() as selector:
            if self._stream is not None:
                selector.register(self._stream, selectors.EVENT_READ)
            return next(iter(self._take()), None) if selector.select(seconds) else None

    def _take(self) -> list[int]:
        assert self._stream is not None, "it was registered"
        return [signum for signum in self._stream.recv(64) if signum in self._caught]


@contextmanager
def ending_signals() -> Iterator[EndingSignals]:
    """Catch the signals that ask this process to end, in the block.

    Ignored signals (``nohup``) stay ignored. Outside the main thread, which alone receives signals, nothing changes.
    """
    caught = [signum for signum in ENDING_SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        try:
            handlers = {signum: signal.signal(signum, lambda *_: None) for signum in caught}
            previous = signal.set_wakeup_fd(theirs.fileno())
        except ValueError:  # not the main thread
            yield EndingSignals(None, caught)
            return
        try:
            yield EndingSignals(ours, caught)
        finally:
            signal.set_wakeup_fd(previous)
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
