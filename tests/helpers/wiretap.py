"""Relay between two sockets by someone in between, who keeps what each side says and may cut it."""

import socket
import threading
from contextlib import suppress

LIMIT = 60  # seconds without a word


class Wiretap:
    """Relay from a listening socket to what ``dial()`` connects to.

    Attributes:
        said: bytes of the dialer of each connection, in order of their arrival.
        heard: bytes that came back.
    """

    def __init__(self, listening, dial):
        self.said, self.heard = [], []
        self._listening, self._dial = listening, dial
        self._open, self._threads = [], []
        self._run(self._accept)

    def cut(self):
        """Break all connections; new ones work."""
        for stream in self._open:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(LIMIT)
        self.cut()
        for thread in self._threads:
            thread.join(LIMIT)
            assert not thread.is_alive()
        for stream in [self._listening, *self._open]:
            stream.close()

    def _run(self, function, *args):
        self._threads.append(threading.Thread(target=function, args=args))
        self._threads[-1].start()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self._open.append(near)
                try:
                    far = self._dial()
                except OSError:
                    near.shutdown(socket.SHUT_RDWR)
                    continue
                self._open.append(far)
                self.said.append(bytearray())
                self.heard.append(bytearray())
                self._run(self._copy, near, far, self.said[-1])
                self._run(self._copy, far, near, self.heard[-1])

    def _copy(self, source, sink, kept):
        with suppress(OSError):
            while text := source.recv(1 << 16):
                kept += text
                sink.sendall(text)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
