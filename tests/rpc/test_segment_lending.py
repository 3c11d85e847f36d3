"""Lending of shared segments: both sides as machines, without sockets."""

import gc
import os
import random
import weakref

import numpy as np
import pytest
from telegrad.base.errors import SerializationError
from telegrad.core.shared_memory import create_segment
from telegrad.rpc.lanes.large.allowance import Allowance
from telegrad.rpc.lanes.large.borrower import Borrower
from telegrad.rpc.lanes.large.lender import CLASS_BYTES, FEWEST, IDLE_SECONDS, MOST, Lender, class_size

PAGE = 4096


def allowance(size=1 << 30, number=1000):
    return Allowance(size, number)


@pytest.fixture
def lender():
    made = Lender(allowance())
    yield made
    made.close()


@pytest.fixture
def woken():
    return []


@pytest.fixture
def borrower(woken):
    made = Borrower(allowance(), lambda: woken.append(1))
    yield made
    made.close()


@pytest.fixture
def interrupted_end(monkeypatch):
    """Let Ctrl-C come where the end of a loan begins: Python prints what a finalizer raises, and goes on."""
    printed = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)

    def end(self, loan):
        raise KeyboardInterrupt

    monkeypatch.setattr(Borrower, "_released", end)
    yield
    assert [type(each.exc_value) for each in printed] == [KeyboardInterrupt]


def offered(lender, size=PAGE, count=1):
    """Let a lender make segments of a size, as it does when that is missed twice, and return their numbers."""
    lender.offer([size], 0.0)
    made = [number for number, _ in lender.offer([size] * count, 1.0)]
    assert len(made) == count
    return made


@pytest.mark.parametrize("size", [1, PAGE, PAGE + 1, 1 << 20, (1 << 20) + 1, 10**9, 3 << 40])
def test_a_class_is_a_little_larger_than_what_it_is_for(size):
    made = class_size(size)
    assert size <= made <= max(size * 9 / 8, -(-size // PAGE) * PAGE)
    assert made % PAGE == 0 and class_size(made) == made


def test_a_segment_is_made_when_a_size_is_missed_again_soon(lender):
    assert not lender.offer([PAGE], 0.0)
    assert lender.lend(PAGE) is None
    assert not lender.offer([PAGE], IDLE_SECONDS)
    assert not lender.offer([5 * PAGE], IDLE_SECONDS + 1)
    assert len(lender.offer([PAGE, PAGE], IDLE_SECONDS + 1)) == 2


def test_a_segment_is_lent_to_one_frame_at_a_time(lender):
    numbers = offered(lender, count=2)
    assert lender.lend(PAGE) is None  # the receiver has not mapped them
    lender.take_back(numbers, 2.0)
    lent = [lender.lend(PAGE)[0] for _ in numbers]
    assert sorted(lent) == sorted(numbers) and lender.lend(PAGE) is None
    lender.take_back(lent[:1], 3.0)
    assert lender.lend(PAGE)[0] == lent[0]


def test_the_segment_that_came_back_last_is_used_first(lender):
    first, second, third = offered(lender, count=3)
    lender.take_back([second, third, first], 2.0)
    assert lender.lend(PAGE)[0] == first


def test_a_segment_that_comes_back_twice_is_idle_once(lender):
    numbers = offered(lender)
    lender.take_back([*numbers, *numbers, 77], 2.0)
    assert len(lender) == 1


def test_segments_that_idle_for_too_long_are_dropped_and_the_receiver_is_told():
    bound = allowance(2 * PAGE, 2)
    lender = Lender(bound)
    first, second = offered(lender, count=2)
    assert not bound.reserve(PAGE)
    lender.take_back([first], 2.0)
    lender.take_back([second], 3.0)
    lender.trim(2.0 + IDLE_SECONDS)
    assert (len(lender), lender.take_gone(), lender.take_gone()) == (1, [first], [])
    assert bound.reserve(PAGE)


def test_a_new_size_takes_the_place_of_idle_segments_but_not_of_lent_ones():
    lender = Lender(allowance(4 * PAGE, 9))
    numbers = offered(lender, count=2)
    lender.take_back(numbers[:1], 2.0)
    assert not lender.offer([4 * PAGE], 3.0)
    assert not lender.offer([4 * PAGE], 4.0)  # one is still lent
    assert lender.take_gone() == numbers[:1]
    lender.take_back(numbers[1:], 5.0)
    assert len(lender.offer([4 * PAGE], 5.0)) == 1


@pytest.mark.parametrize("size", [PAGE, CLASS_BYTES // 8, CLASS_BYTES])
def test_a_class_has_only_so_many_segments(size):
    # No memory for them: only their number counts.
    lender = Lender(allowance(1 << 40), lambda size: np.broadcast_to(np.uint8(0), (size,)))
    lender.offer([size], 0.0)
    assert len(lender.offer([size] * 100, 1.0)) == min(max(CLASS_BYTES // size, FEWEST), MOST)


@pytest.mark.parametrize("error", [OSError("no space"), PermissionError("seccomp"), MemoryError()])
def test_a_system_that_gives_no_segment_is_no_error(error):
    def refuse(size):
        raise error

    bound = allowance(PAGE, 1)
    lender = Lender(bound, refuse)
    lender.offer([PAGE], 0.0)
    assert lender.offer([PAGE], 1.0) == []
    assert bound.reserve(PAGE)


def test_after_a_refusal_nothing_is_offered_for_a_while(lender):
    lender.forget(offered(lender), 2.0)
    assert not lender.offer([PAGE], 3.0)
    lender.offer([PAGE], 2.0 + IDLE_SECONDS)
    assert lender.offer([PAGE], 3.0 + IDLE_SECONDS)


def test_closing_gives_everything_back():
    bound = allowance(3 * PAGE, 3)
    lender = Lender(bound)
    lender.take_back(offered(lender, count=3)[:2], 2.0)
    lender.lend(PAGE)
    lender.close()
    assert all(bound.reserve(PAGE) for _ in range(3))


def test_a_closed_lender_makes_no_segments():
    bound = allowance(PAGE, 1)
    lender = Lender(bound)
    lender.offer([PAGE], 0.0)
    lender.close()
    assert lender.offer([PAGE], 1.0) == []
    assert bound.reserve(PAGE)


def test_a_lender_that_closes_while_it_makes_a_segment_does_not_keep_it():
    bound, made = allowance(PAGE, 1), []

    def create(size):
        lender.close()
        segment = create_segment(size)
        made.append(weakref.ref(segment))
        return segment

    lender = Lender(bound, create)
    lender.offer([PAGE], 0.0)
    assert lender.offer([PAGE], 1.0) == []
    assert bound.reserve(PAGE)
    assert made[0]() is None


def borrow(borrower, number=1, size=PAGE):
    """Let a borrower map a new segment, and return it."""
    segment = create_segment(size)
    borrower.open(number, os.dup(segment.fd))
    return segment


def test_a_piece_is_the_segments_memory_and_is_given_back_with_its_last_view(borrower, woken):
    segment = borrow(borrower)
    assert borrower.take_returned() == ([1], [])  # mapped, and ready to be used
    segment[:3] = b"abc"
    array = np.ndarray((3,), np.uint8, borrower.piece(1, 3))
    assert bytes(array) == b"abc"
    array[0] = ord("x")
    assert segment[:3] == b"xbc"
    view = array.reshape(3, 1)[1:]
    del array
    assert borrower.take_returned() == ([], []) and not woken
    del view
    gc.collect()
    assert borrower.take_returned() == ([1], []) and woken


def test_what_cannot_be_mapped_is_refused(borrower, tmp_path):
    """A file that could shrink would end whoever reads it with SIGBUS."""
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.truncate(file, PAGE)
    unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.truncate(unsealed, PAGE)
    for number, descriptor in enumerate([None, file, unsealed, os.open("/dev/zero", os.O_RDWR)]):
        borrower.open(number, descriptor)
    assert borrower.take_returned() == ([], [0, 1, 2, 3])
    assert len(borrower) == 0


def test_more_than_the_allowance_is_refused():
    borrower = Borrower(allowance(PAGE, 9), lambda: None)
    borrow(borrower, 1)
    borrow(borrower, 2)
    assert borrower.take_returned() == ([1], [2])
    borrower.unmap([1])
    borrow(borrower, 3)
    assert borrower.take_returned() == ([3], [])


def test_a_segment_that_is_offered_to_a_closed_borrower_is_not_kept(woken):
    """The thread that reads may be in the middle of an offer when the session ends."""
    bound, descriptors = allowance(PAGE, 1), len(os.listdir("/proc/self/fd"))
    borrower = Borrower(bound, lambda: woken.append(1))
    borrower.close()
    borrow(borrower)
    assert len(borrower) == 0 and bound.reserve(PAGE)
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize(("number", "size"), [(2, 10), (1, PAGE + 1)])
def test_a_piece_that_is_not_there_is_an_error(borrower, number, size):
    borrow(borrower)
    with pytest.raises(SerializationError, match="segment"):
        borrower.piece(number, size)


def test_arrays_outlive_the_lender_the_mapping_and_the_session(borrower):
    segment = borrow(borrower)
    segment[:3] = b"abc"
    piece = borrower.piece(1, 3)
    del segment
    borrower.close()
    assert bytes(piece) == b"abc"


def test_memory_that_a_forked_child_may_use_is_not_lent_again(borrower):
    borrow(borrower)
    borrower.take_returned()
    piece = borrower.piece(1, 3)
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)
    later = borrower.piece(1, 3)
    del later
    assert borrower.take_returned() == ([1], [])
    del piece
    assert borrower.take_returned() == ([], [1])
    assert len(borrower) == 0


def test_a_forked_child_writes_into_memory_of_its_own(borrower):
    segment = borrow(borrower)
    segment[:4] = b"sent"
    array = np.ndarray((4,), np.uint8, borrower.piece(1, 4))
    if (child := os.fork()) == 0:
        good = bytes(array) == b"sent"
        array[:] = 0
        os._exit(not good)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bytes(array) == b"sent"
    array[:] = 1
    assert bytes(array) == b"\1\1\1\1" and segment[:4] == b"sent"


def test_what_was_written_between_two_forks_stays(borrower):
    borrow(borrower)
    array = np.ndarray((4,), np.uint8, borrower.piece(1, 4))
    for written in (b"once", b"more"):
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)
        array[:] = list(written)
    if (child := os.fork()) == 0:
        os._exit(bytes(array) != b"more")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bytes(array) == b"more"


def test_arrays_are_kept_from_a_child_also_when_their_session_is_gone():
    borrower = Borrower(allowance(), lambda: None)
    segment = borrow(borrower)
    array = np.ndarray((4,), np.uint8, borrower.piece(1, 4))
    borrower.close()
    del borrower
    gc.collect()
    if (child := os.fork()) == 0:
        array[:] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert bytes(array) == segment[:4] == bytes(4)


@pytest.mark.parametrize("seed", range(30))
def test_in_any_order_nothing_is_overwritten_while_it_is_in_use(seed):
    """Frames, returns and notices of both sides, delayed and in any order; each array keeps what was sent."""
    draw = random.Random(seed)
    lender, borrower = Lender(allowance(40 * PAGE, 12)), Borrower(allowance(20 * PAGE, 8), lambda: None)
    offers, frames, notices, arrays = [], [], [], []
    for step in range(400):
        size = draw.choice((10, PAGE, 3 * PAGE))
        match draw.randrange(7):
            case 0:
                offers += lender.offer([size], step / 10)
            case 1 if offers:
                number, segment = offers.pop(draw.randrange(len(offers)))
                borrower.open(number, os.dup(segment.fd))
            case 2 if (loan := lender.lend(size)) is not None:
                loan[1][:size] = bytes([step % 256]) * size
                frames.append((loan[0], size, step % 256))
            case 3 if frames:
                number, size, value = frames.pop(draw.randrange(len(frames)))
                arrays.append((borrower.piece(number, size), value))
            case 4 if arrays:
                del arrays[draw.randrange(len(arrays))]
            case 5:
                notices.append((*borrower.take_returned(), lender.take_gone()))
            case 6 if notices:
                reusable, refused, gone = notices.pop(0)
                lender.take_back(reusable, step / 10)
                lender.forget(refused, step / 10)
                borrower.unmap(gone)
        for array, value in arrays:
            assert array[0] == array[-1] == value
    del array


def test_a_segment_goes_with_its_session_when_the_end_of_its_loan_was_interrupted(lender, interrupted_end):
    borrower = Borrower(allowance(), lambda: None)
    ((number, segment),) = lender.offer([PAGE], 0.0) or lender.offer([PAGE], 1.0)
    borrower.open(number, os.dup(segment.fd))
    known = weakref.ref(borrower._segments[number])
    piece = borrower.piece(number, PAGE)
    del piece
    borrower.close()
    assert known() is None


def test_a_loan_that_was_interrupted_while_it_was_made_is_forgotten(lender, monkeypatch):
    printed = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)
    borrower = Borrower(allowance(), lambda: None)
    ((number, segment),) = lender.offer([PAGE], 0.0) or lender.offer([PAGE], 1.0)
    borrower.open(number, os.dup(segment.fd))
    monkeypatch.setattr("telegrad.rpc.lanes.large.borrower.fork_count", interrupt)
    with pytest.raises(KeyboardInterrupt):
        borrower.piece(number, PAGE)
    borrower.close()
    assert printed == [] and len(borrower) == 0


def interrupt():
    raise KeyboardInterrupt
