"""A stream without a loop, to test the turns of those who read it."""

import contextvars
import socket
import threading
from types import SimpleNamespace

from telegrad.core.futures import Future
from telegrad.rpc.lanes.reading import SharedReading
from telegrad.rpc.lanes.stream_pipe import StreamWriter
from telegrad.rpc.lanes.stream_reader import StreamReader
from telegrad.rpc.lanes.stream_socket import PlainSocket


def stop(error):
    """Raise the error of a socket, where a pipe would break."""
    raise error


class Line:
    """A stream without a loop: frames name the future that they complete."""

    def __init__(self):
        self.near, self.far = map(PlainSocket.of, socket.socketpair())
        self.futures = [Future() for _ in range(4)]
        self.readers, self.watched, self.ended = [], [], []
        self.reader, self.reads = StreamReader(self.near), 0
        self.writer = StreamWriter(self.far, lambda wanted: None, int, stop)
        self.unsent, self.watch_input, self.end = self.writer.waiting, self.watched.append, self.ended.append
        self.flush_waiting = self.progress = int
        self.under_way = (), ()
        loop = SimpleNamespace(call_soon_threadsafe=lambda *args, context: None)
        self.reading = SharedReading(self, self.near.fileno(), self.read, loop)
        for future in self.futures:
            future.driver = self.reading

    def read(self):
        self.reads += 1
        return self.reader.read()

    def deliver(self, frame):
        self.readers.append(threading.current_thread())
        self.futures[frame[0]].set_result(frame[0])

    def send(self, number):
        self.writer.send([bytes([number])], 1, None)

    def close(self):
        self.reading.close(self.near.close)
        self.far.close()


def is_asleep(line):
    return lambda: line.reading._sleeper._asleep


def in_thread(function, results):
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: results.append(context.run(function)))
    thread.start()
    return thread
