"""Segments: memory without a name, mapped by descriptor, gone with its last holder."""

import gc
import mmap
import os

import numpy as np
import pytest
from telegrad.core.shared_memory import create_segment, open_segment
from telegrad.core.shared_memory.segments import Descriptor

# Tests fork, whatever threads other tests have left in this process.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def segments_here():
    with open("/proc/self/maps") as maps:
        return sum("memfd:telegrad" in line for line in maps)


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_000])
def test_two_mappings_of_one_memory(size):
    first = create_segment(size)
    second = open_segment(os.dup(first.fd))
    assert len(first) == len(second) == max(size, 1) and first.identity == second.identity
    first[-1:] = b"x"
    assert second[-1:] == b"x" and first.identity != create_segment(1).identity


def test_arrays_over_it():
    segment = create_segment(100)
    array = segment.array("float32", (2, 3), 4)
    assert array.base is segment and array.flags.writeable and not array.any()
    array[1] = 5
    assert segment.array("float32", (3, 2), 4, (4, 12)).tolist() == [[0, 5], [0, 5], [0, 5]]
    assert segment.array("int8", (0, 3), 100).shape == (0, 3)
    with pytest.raises(TypeError, match="buffer is too small"):
        segment.array("float32", (25,), 4)


@pytest.mark.parametrize("keep", [lambda root: root, lambda root: root[2:].reshape(2, -1).T[1:]], ids=["root", "view"])
def test_an_array_keeps_it_and_it_goes_with_the_last(keep):
    before = segments_here()
    kept = keep(create_segment(800).array("float64", (100,)))
    gc.collect()
    kept[...] = 3
    assert segments_here() == before + 1
    del kept
    assert segments_here() == before  # the fixture that looks for open files looks for its descriptor


def test_it_cannot_change_its_size():
    segment = create_segment(4096)
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(segment.fd, size)


def test_its_memory_is_really_there():
    segment = create_segment(1 << 20)
    assert os.fstat(segment.fd).st_blocks * 512 >= 1 << 20


def test_too_large_a_segment_is_refused_before_it_is_used():
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(MemoryError, match="larger than this machine's memory"):
        create_segment(1 << 60)
    assert len(os.listdir("/proc/self/fd")) == before


def test_strange_descriptors_are_refused(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    strange = [os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT), os.memfd_create("not sealed", 0), *os.pipe()]
    for fd in strange:
        with pytest.raises(ValueError, match="not a shared-memory segment"):
            open_segment(fd)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_system_without_it_is_told(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(OSError, match=r"memfd_create\(\), which Linux has"):
        create_segment(10)


def test_a_forked_child_sees_it():
    segment = create_segment(8)
    array = segment.array(np.int64, (1,))
    child = os.fork()
    if not child:
        array[0] = 42
        os._exit(0)
    os.waitpid(child, 0)
    assert array[0] == 42 and isinstance(segment, mmap.mmap)


def test_a_descriptor_whose_making_was_interrupted_closes_nothing():
    descriptor = Descriptor.__new__(Descriptor)  # as Ctrl-C before its number is kept leaves it
    descriptor.close()
    assert descriptor.number == -1
