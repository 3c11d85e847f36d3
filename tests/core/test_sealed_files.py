"""Sealed files: their bytes, which no process changes, and private mappings of them."""

import os

import pytest
from telegrad.core.shared_memory import map_sealed, open_sealed, write_sealed


def test_bytes_are_where_they_were_put():
    file = write_sealed(5000, [(0, b"abc"), (4096, bytearray(b"xyz"))])
    for memory in (file.map(), map_sealed(file.address()), open_sealed(file.address()).map()):
        assert len(memory) == 5000
        assert (memory[:3], memory[4096:4099]) == (b"abc", b"xyz")
        assert not any(memory[3:4096]) and not any(memory[4099:])


def test_no_mapping_sees_what_is_written_to_another():
    file = write_sealed(4, [(0, b"abcd")])
    memory = file.map()
    memory[:2] = b"xy"
    assert (memory[:], file.map()[:]) == (b"xycd", b"abcd")


def test_no_process_changes_the_file():
    file = write_sealed(4, [(0, b"abcd")])
    other = file.address().open(os.O_RDWR)
    try:
        with pytest.raises(PermissionError):
            os.pwrite(other, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(other, 0)
    finally:
        os.close(other)


def test_a_mapping_outlives_the_file_which_is_not_found_any_more():
    file = write_sealed(4, [(0, b"abcd")])
    memory, address = file.map(), file.address()
    file.close()
    assert memory[:] == b"abcd"
    with pytest.raises(OSError):
        file.map()
    with pytest.raises(OSError):
        map_sealed(address)


def test_another_file_is_refused(tmp_path):
    with open(tmp_path / "file", "wb") as other:
        address = write_sealed(1, []).address()._replace(fd=other.fileno(), identity=_identity(other.fileno()))
        for use in (open_sealed, map_sealed):
            with pytest.raises(ValueError, match="not a shared-memory segment"):
                use(address)
    with pytest.raises(MemoryError):
        write_sealed(1 << 60, [])


def test_no_descriptor_stays_open():
    before = os.listdir("/proc/self/fd")
    file = write_sealed(10, [(0, b"abc")])
    memories = [file.map(), map_sealed(file.address()), open_sealed(file.address()).map()]
    file.close()
    del memories
    assert os.listdir("/proc/self/fd") == before


def _identity(fd):
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
