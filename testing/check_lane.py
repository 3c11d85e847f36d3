"""Checks that every lane must pass: ``check_lane(make_lane)`` (in the manner of trio's ``check_two_way_stream``).

Each check gets two new listeners on new lanes, says in its name what holds, and leaves nothing open. A wait that takes longer
than ``TIMEOUT_SECONDS`` is a failure.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..base.errors import AuthenticationError
from ..core.futures import Future
from ..proto.rpc_pb2 import WorkerRecord
from ..rpc.extend import Lane, LaneListener, Session
from ..rpc.security.handshake import AcceptorHandshake, DialerHandshake

TIMEOUT_SECONDS = 20.0
SECRET = b"what the workers of this job know"
LaneMaker = Callable[[], Lane]


class RecordingListener(LaneListener):
    """Listener of a lane that only records what it is told."""

    def __init__(self, name: str, rank: int, secret: bytes, refuse: str = "") -> None:
        self.keepalive = 10.0
        self.record = WorkerRecord(
            name=name, rank=rank, number=rank, identity=secrets.token_bytes(16), process_id=os.getpid()
        )
        self.frames: list[tuple[Session, bytes, bool]] = []
        self.answers: list[Session] = []
        self.opened: list[Session] = []
        self.ended: list[tuple[Session, Exception]] = []
        self.accepted: list[Session] = []
        self.turned_away: list[str] = []
        self.known: Future[Any] = Future()
        self.known.set_result(None)
        self._secret = secret
        self._refuse = refuse
        self._changed = threading.Condition()

    def dialer_handshake(self, expected_identity: bytes, address: str, certificate: bytes = b"") -> DialerHandshake:
        return DialerHandshake(self._secret, self.record, expected_identity, address, certificate)

    def acceptor_handshake(self) -> AcceptorHandshake:
        return AcceptorHandshake(self._secret, self.record)

    def members_known(self) -> Future[None]:
        return self.known

    def admit(self, handshake: AcceptorHandshake, session: Session) -> str:
        if not self._refuse:
            session.number = handshake.peer.number
            self._note(self.accepted, session)
        return self._refuse

    def refused(self, address: str, reason: str) -> None:
        self._note(self.turned_away, reason)

    def answered(self, session: Session) -> None:
        self._note(self.answers, session)

    def connected(self, session: Session) -> None:
        self._note(self.opened, session)

    def received(self, session: Session, frame: Any, owned: bool) -> None:
        self._note(self.frames, (session, bytes(frame), owned))

    def disconnected(self, session: Session, error: Exception) -> None:
        self._note(self.ended, (session, error))

    def _note(self, notes: list[Any], note: Any) -> None:
        with self._changed:
            notes.append(note)
            self._changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a record fulfils a condition."""
        with self._changed:
            assert self._changed.wait_for(condition, TIMEOUT_SECONDS), (
                f"{self.record.name} was not told in {TIMEOUT_SECONDS} s"
            )


class Pair:
    """Dialer and acceptor, each on its own lane."""

    def __init__(self, make_lane: LaneMaker, dialer_secret: bytes = SECRET, refuse: str = "") -> None:
        self.dialer = RecordingListener("dialer", 0, dialer_secret)
        self.acceptor = RecordingListener("acceptor", 1, SECRET, refuse)
        self.near, self.far = make_lane(), make_lane()
        self.address = self.far.listen(self.acceptor, None)
        self.acceptor.record.addresses[:] = [self.address, *self.far.offers]
        self.session = self.near.dial(self.dialer, self.acceptor.record, self.address)

    def talk(self) -> Session:
        """Open the session, and return the acceptor's end."""
        self.session.start()
        self.dialer.until(lambda: bool(self.dialer.opened))
        return self.acceptor.accepted[0]

    def close(self) -> None:
        """Close the sessions, then the lanes, as an agent does."""
        self.session.close()
        for session in self.acceptor.accepted:
            session.close()
        self.near.close()
        self.far.close()


@contextmanager
def pair(make_lane: LaneMaker, **options: Any) -> Iterator[Pair]:
    """Yield a pair, and close it."""
    both = Pair(make_lane, **options)
    try:
        yield both
    finally:
        both.close()


def check_frames_travel_both_ways_whole_and_in_order(make_lane: LaneMaker) -> None:
    """Check that small frames of one session keep their order, and that their parts are joined."""
    with pair(make_lane) as both:
        far_end = both.talk()
        for number in range(500):
            assert both.session.send([b"a", bytes([number % 256]) * number, b"z"])
            assert far_end.send([b"%d" % number])
        both.acceptor.until(lambda: len(both.acceptor.frames) == 500)
        both.dialer.until(lambda: len(both.dialer.frames) == 500)
        assert [frame for _, frame, _ in both.acceptor.frames] == [
            b"a" + bytes([number % 256]) * number + b"z" for number in range(500)
        ]
        assert [frame for _, frame, _ in both.dialer.frames] == [b"%d" % number for number in range(500)]
        assert both.acceptor.frames[0][0] is far_end and both.dialer.frames[0][0] is both.session


def check_large_frames_arrive_and_small_ones_need_not_wait(make_lane: LaneMaker) -> None:
    """Check large frames from several threads at once, and small ones beside them."""
    with pair(make_lane) as both:
        both.talk()
        bodies = [b"a" + secrets.token_bytes(3_000_000 + number) for number in range(4)]
        threads = [threading.Thread(target=both.session.send, args=([body],)) for body in bodies]
        for thread in threads:
            thread.start()
        both.session.send([b"small"])
        for thread in threads:
            thread.join()
        both.acceptor.until(lambda: len(both.acceptor.frames) == 5)
        assert sorted(frame for _, frame, _ in both.acceptor.frames) == sorted([*bodies, b"small"])


def check_frames_are_captured_when_send_returns(make_lane: LaneMaker) -> None:
    """Check that the sender's memory can be changed afterwards."""
    with pair(make_lane) as both:
        for size in (10, 5_000_000):
            memory = bytearray(b"x" * size)
            both.session.send([memory])
            memory[:] = b"y" * size
        both.talk()
        both.acceptor.until(lambda: len(both.acceptor.frames) == 2)
        assert all(set(frame) == {ord("x")} for _, frame, _ in both.acceptor.frames)


def check_a_port_without_a_listener_refuses_the_session(make_lane: LaneMaker) -> None:
    """Check that a dial to a port without a listener fails with ``ConnectionRefusedError``: verdicts depend on it."""
    with pair(make_lane) as both:
        both.far.close()
        both.far = make_lane()
        both.session.start()
        both.dialer.until(lambda: bool(both.dialer.ended))
        assert isinstance(both.dialer.ended[0][1], ConnectionRefusedError), both.dialer.ended
        assert not both.session.send([b"late"])


def check_a_peer_without_the_secret_is_refused(make_lane: LaneMaker) -> None:
    """Check that without the secret no frame arrives, and that the dialer is told why."""
    with pair(make_lane, dialer_secret=b"another secret of the same kind") as both:
        both.session.send([b"attack"])
        both.session.start()
        both.dialer.until(lambda: bool(both.dialer.ended))
        assert isinstance(both.dialer.ended[0][1], AuthenticationError), both.dialer.ended
        assert not both.acceptor.frames and not both.acceptor.accepted
        assert both.acceptor.turned_away == ["it does not know this job's secret"]


def check_a_handshake_that_was_passed_on_is_refused(make_lane: LaneMaker) -> None:
    """Check that a relay at another address cannot pass a handshake on."""
    with pair(make_lane) as both:
        both.acceptor.record.addresses[:] = ["elsewhere"]
        both.session.send([b"attack"])
        both.session.start()
        both.dialer.until(lambda: bool(both.dialer.ended))
        assert isinstance(both.dialer.ended[0][1], AuthenticationError), both.dialer.ended
        assert not both.acceptor.frames and not both.acceptor.accepted


def check_a_refusal_reaches_the_dialer(make_lane: LaneMaker) -> None:
    """Check that an acceptor can refuse a joiner that it knows."""
    with pair(make_lane, refuse="refused by the check") as both:
        both.session.start()
        both.dialer.until(lambda: bool(both.dialer.ended))
        error = both.dialer.ended[0][1]
        assert isinstance(error, ConnectionAbortedError) and "refused by the check" in str(error), error


def check_closing_delivers_the_last_frame_and_tells_each_host_once(make_lane: LaneMaker) -> None:
    """Check that the last frame of a closing end arrives, and that both listeners are told exactly once."""
    for closes_far in (False, True):
        with pair(make_lane) as both:
            far_end = both.talk()
            closing, listening = (far_end, both.dialer) if closes_far else (both.session, both.acceptor)
            closing.send([b"queued"])
            closing.close([b"last"])
            listening.until(lambda listener=listening: len(listener.frames) == 2)  # type: ignore[misc]
            for listener in (both.dialer, both.acceptor):
                listener.until(lambda listener=listener: bool(listener.ended))  # type: ignore[misc]
            assert not closing.send([b"after"])
        assert len(both.dialer.ended) == len(both.acceptor.ended) == 1


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]


def check_lane(make_lane: LaneMaker) -> None:
    """Run every check on lanes that ``make_lane`` makes."""
    for check in CHECKS:
        check(make_lane)
