"""Frames of two threads and of the loop on one socket: none is forgotten, wherever one comes while another one is written."""

import sys
import threading
from itertools import count

import pytest
from helpers.lines import stop
from telegrad.rpc.lanes import stream_pipe
from telegrad.rpc.lanes.stream_pipe import FRAME_LENGTH, StreamWriter

SECONDS = 20
FIRST, SECOND, THIRD = b"first", b"second", b"third"


class Line:
    """Writer on a socket that has room for a few bytes, and a loop that writes when it is told of room.

    Args:
        room: bytes that the socket takes.
    """

    def __init__(self, room):
        self.room = room
        self.sent = b""
        self.watches = False
        self.writer = StreamWriter(self, self._watch, int, stop)

    def send(self, data):
        taken = bytes(data[: self.room])
        if not taken:
            raise BlockingIOError
        self.room -= len(taken)
        self.sent += taken
        return len(taken)

    def _watch(self, wanted):
        self.watches = wanted

    def loop(self):
        """Do as the loop does when the socket has room."""
        self.room = 1000
        if self.watches:
            self.writer.flush()

    def put(self, frame):
        self.writer.send([frame], len(frame), None)

    def leave(self, frame):
        """Do as a thread does that leaves its frame to the one that reads, which has stopped meanwhile."""
        self.writer.leave([frame], None)
        self.writer.write_waiting()


def run_with_break(action, after, then):
    """Run ``action``, and ``then`` in another thread after so many of its steps; return False if it takes fewer."""
    steps, others = count(), []

    def trace(frame, event, argument):
        if frame.f_code.co_filename == stream_pipe.__file__:
            frame.f_trace_opcodes = True
            if event == "opcode" and next(steps) == after:
                others.append(threading.Thread(target=then))
                others[0].start()
                if not frame.f_locals["self"]._lock.locked():  # else it waits for this thread
                    others[0].join(SECONDS)
        return trace

    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(None)
    for other in others:
        other.join(SECONDS)
        assert not other.is_alive()
    return bool(others)


@pytest.mark.parametrize("room", [0, 3, len(FIRST) + FRAME_LENGTH.size, 1000])
@pytest.mark.parametrize("way", ["put", "leave"])
@pytest.mark.parametrize("loop_first", [True, False])
def test_no_frame_waits_without_anybody_who_will_write_it(room, way, loop_first):
    for after in count():
        line = Line(room)
        line.put(FIRST)

        def meanwhile(line=line):
            if loop_first:
                line.loop()
            line.put(THIRD)
            if not loop_first:
                line.loop()

        broke = run_with_break(lambda line=line: getattr(line, way)(SECOND), after, meanwhile)
        line.loop()
        frames = sorted([FIRST, SECOND, THIRD] if broke else [FIRST, SECOND])
        assert frames_of(line.sent) == frames and not line.writer.waiting, f"after {after} steps"
        if not broke:
            return


def frames_of(data):
    """Return the frames in some bytes, sorted."""
    frames = []
    while data:
        end = FRAME_LENGTH.size + FRAME_LENGTH.unpack_from(data)[0]
        frames.append(data[FRAME_LENGTH.size : end])
        data = data[end:]
    return sorted(frames)
