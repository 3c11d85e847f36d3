"""Sessions and their pipes: which pipe a frame goes by, and what becomes of frames that wait while that is decided."""

import threading

import pytest
from telegrad.rpc.call_states import ADMITTED, WRITTEN
from telegrad.rpc.lanes.frame import FrameHandle, WaitingFrame
from telegrad.rpc.lanes.inproc import InProcessSession
from telegrad.rpc.lanes.late_frames import LateFrames
from telegrad.rpc.lanes.pipe import Pipe
from telegrad.rpc.lanes.session import SHORT_BYTES, Session


class Handle(FrameHandle):
    """Handle of a frame that is not restamped."""

    def restamp(self, head):
        return head


class Sent(Pipe):
    """Pipe that keeps what it is given to send."""

    def __init__(self, least=0):
        self.least, self.frames, self.on_add = least, [], lambda frame: None

    def send(self, parts, size, handle):
        assert size == sum(map(len, parts))
        self.frames.append(b"".join(parts))
        return True

    def add(self, frames):
        for frame in frames:
            if (data := frame.take()) is not None:
                self.frames.append(data)
                self.on_add(data)


class Plain(Session):
    """Session without a transport."""

    def close(self, last=None):
        self.closed = True
        self.small.close()


def test_what_waits_goes_first_and_in_its_order():
    session, pipe = Plain(), Sent()
    for frame in (b"first", b"second"):
        assert session.send([frame])
    assert not session.opened and session.reading is None
    session.use(pipe, "test")
    session.send([b"th", b"ird"])
    assert pipe.frames == [b"first", b"second", b"third"] and session.opened and session.scheme == "test"


def test_a_frame_that_is_sent_while_others_are_passed_on_waits_for_them():
    """Even if the thread that passes them on sends it: what receives a frame in the same process may answer at once."""
    session, pipe = Plain(), Sent()
    pipe.on_add = lambda frame: frame == b"first" and session.send([b"answer"])
    for frame in (b"first", b"second"):
        session.send([frame])
    session.use(pipe, "test")
    assert pipe.frames == [b"first", b"second", b"answer"]


def test_frames_of_many_threads_keep_each_threads_order_while_the_pipe_is_chosen():
    session, pipe, senders = Plain(), Sent(), 4
    begun = threading.Barrier(senders + 1)

    def send(sender):
        begun.wait(30)
        for number in range(300):
            session.send([bytes((sender, number // 256, number % 256))])

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
    for thread in threads:
        thread.start()
    begun.wait(30)
    session.use(pipe, "test")
    for thread in threads:
        thread.join(30)
    for sender in range(senders):
        mine = [frame for frame in pipe.frames if frame[0] == sender]
        assert mine == sorted(mine) and len(mine) == 300


def test_a_late_thread_sends_by_the_pipe_that_took_over():
    session, pipe = Plain(), Sent()
    former = session.small  # as a thread has read it
    session.use(pipe, "test")
    assert former.send([b"late"], 4, None) and pipe.frames == [b"late"]


def test_large_frames_go_by_the_pipe_of_large_frames():
    session, small, large = Plain(), Sent(), Sent(least=100)
    session.large = large
    session.use(small, "test")
    for size in (1, 99, 100, 101):
        session.send([bytes(size // 2), bytes(size - size // 2)])
    assert [len(frame) for frame in small.frames] == [1, 99] and [len(frame) for frame in large.frames] == [100, 101]


class Leaves(Sent):
    """Pipe in which frames can wait for the next one; notes how it was given each."""

    def leave(self, parts):
        self.frames.append(b"left " + b"".join(parts))
        return True


def test_late_frames_leave_before_a_short_frame_and_after_a_long_one():
    session, large = Plain(), Sent(least=1 << 20)
    session.late = LateFrames()
    session.large = large
    session.use(small := Leaves(), "test")

    def send(size):
        def take():
            session.late.take = None
            return [[b"late"], [b"la", b"ter"]]

        session.late.take = take
        assert session.send([b"x" * size])

    send(1)
    assert small.frames == [b"left late", b"left later", b"x"]
    send(SHORT_BYTES + 1)  # it would be copied
    send(large.least)  # it goes by another pipe
    assert [frame[:5] for frame in small.frames[3:]] == [b"xxxxx", b"late", b"later", b"late", b"later"]
    assert len(large.frames) == 1
    session.close()
    session.late.take = lambda: pytest.fail("they would be lost")
    assert not session.send([b"x"])


def test_a_frame_that_is_withdrawn_while_it_waits_does_not_leave():
    session, pipe, handle = Plain(), Sent(), Handle()
    session.send([b"withdrawn"], handle)
    session.send([b"sent"])
    assert handle.state is WRITTEN and handle.withdraw() and not handle.withdraw()
    session.use(pipe, "test")
    assert pipe.frames == [b"sent"]


def test_a_session_that_never_opened_gives_its_frames_back_once():
    session, handles = Plain(), [Handle(), Handle(), Handle()]
    for number, handle in enumerate(handles):
        session.send([b"%d" % number], handle)
    session.send([b"without a handle"])
    handles[1].withdraw()
    session.close()
    assert [(bytes(frame), handle) for frame, handle in session.take_unsent()] == [
        (b"0", handles[0]),
        (b"2", handles[2]),
    ]
    assert session.take_unsent() == [] and not handles[0].withdraw()


def test_a_thread_that_finds_the_session_open_and_sends_after_its_end_is_told():
    session, handle = Plain(), Handle()
    handle.state = ADMITTED
    former = session.small
    session.close()
    assert not former.send([b"late"], 4, handle) and handle.state is ADMITTED and handle.waiting is None
    assert not session.send([b"later"], handle) and session.take_unsent() == []


def test_a_pipe_without_frames_that_wait_says_so():
    class Large(Sent):
        add = Pipe.add

    with pytest.raises(NotImplementedError, match="no frames wait for a Large"):
        Large().add([WaitingFrame(b"", None)])


class Listener:
    """Listener of one end of a session in this process."""

    def __init__(self):
        self.frames, self.ended, self.answers = [], [], lambda frame: None

    def received(self, session, frame, owned):
        self.frames.append(bytes(frame))
        frame[:] = b"its own memory"
        self.answers(frame)

    def disconnected(self, session, error):
        self.ended.append(str(error))


def test_in_process_a_session_that_closes_before_it_is_open_still_sends_its_last_frame():
    near, far = Listener(), Listener()
    accepted, dialed = InProcessSession(near), InProcessSession(far)
    accepted.close([b"expelled"])
    assert not accepted.send([b"more"]) and near.ended == ["closed by this worker"]
    accepted.open(dialed)
    assert far.frames == [b"expelled"]


def test_in_process_an_interrupted_delivery_closes_both_ends():
    near, far = Listener(), Listener()
    one, other = InProcessSession(near), InProcessSession(far)
    one.open(other)
    other.open(one)

    def interrupt(frame):
        raise KeyboardInterrupt

    far.answers = interrupt
    with pytest.raises(KeyboardInterrupt):
        one.send([b"frame"])
    assert near.ended == ["closed by this worker"] and far.ended == ["closed by the peer"]
    assert not one.send([b"frame"]) and not other.send([b"frame"])
