"""The last lines of a program that fails under mpiexec are read before it ends all processes."""

import os
import threading

import pytest
from telegrad.base import mpi


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_the_unread_bytes_of_a_pipe_are_counted(pipe):
    reader, writer = pipe
    assert mpi.unread_bytes(writer) == 0
    os.write(writer, bytes(300))
    assert mpi.unread_bytes(writer) == 300
    os.read(reader, 100)
    assert mpi.unread_bytes(writer) == 200
    with open(os.devnull) as file:
        assert mpi.unread_bytes(file.fileno()) == 0


def test_a_program_that_fails_waits_until_its_output_is_read(pipe, monkeypatch):
    reader, writer = pipe
    monkeypatch.setattr(mpi, "OUTPUT_FILES", (writer,))
    os.write(writer, bytes(300))
    waiting = threading.Thread(target=mpi.hand_over_output)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive(), "nothing has been read"
    os.read(reader, 300)
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_program_whose_output_is_never_read_ends(pipe, monkeypatch):
    monkeypatch.setattr(mpi, "OUTPUT_FILES", (pipe[1],))
    monkeypatch.setattr(mpi, "OUTPUT_SECONDS", 0.01)
    os.write(pipe[1], bytes(300))
    mpi.hand_over_output()
    assert mpi.unread_bytes(pipe[1]) == 300
