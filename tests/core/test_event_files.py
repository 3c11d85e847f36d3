"""TensorBoard's event files of ``tg.log``, read with the schema and the sums of the library."""

import math
import struct
import sys

import pytest
import telegrad as tg
from telegrad.base.job_records import EVENT_FILES
from telegrad.core.recording import ProgramLog, process_log, scalars

with pytest.MonkeyPatch.context() as patch:
    patch.setitem(sys.modules, "torch", None)  # else it takes tests/programs/torch for PyTorch
    crc32c = pytest.importorskip("tensorboardX.crc32c", reason="tensorboardX is not installed")
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="tensorboardX is not installed")


@pytest.fixture(autouse=True)
def log(monkeypatch):
    """Let each test have a log of its own."""
    monkeypatch.setattr(process_log, "_log", ProgramLog())
    monkeypatch.setattr(scalars, "_began", False)


def masked(data):
    value = crc32c.crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read(folder):
    """Return (name, step, value) of each event of the one file of a folder; its lengths and sums are checked."""
    (file,) = folder.iterdir()
    data, rows = file.read_bytes(), []
    while data:
        (length, length_sum), data = struct.unpack("<QI", data[:12]), data[12:]
        body, (body_sum,), data = data[:length], struct.unpack("<I", data[length : length + 4]), data[length + 4 :]
        assert (length_sum, body_sum) == (masked(struct.pack("<Q", length)), masked(body))
        event = event_pb2.Event.FromString(body)
        rows += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
    return rows


def test_an_event_file_has_every_value_that_is_logged_while_it_is_open(tmp_path):
    tg.log(loss=9, step=0)
    with tg.log_to(tmp_path / "run" / "first"):
        for step in range(1, 300):
            tg.log(loss=1 / step, step=step)
        tg.log(**{"train/accuracy": math.inf})
    tg.log(loss=9, step=300)
    *losses, accuracy = read(tmp_path / "run" / "first")
    assert losses == [("loss", step, pytest.approx(1 / step)) for step in range(1, 300)]
    assert accuracy == ("train/accuracy", 0, math.inf)


def test_flush_writes_what_was_logged(tmp_path):
    file = tg.log_to(tmp_path)
    tg.log(loss=1)
    file.flush()
    assert read(tmp_path) == [("loss", 0, 1.0)]
    file.close()
    file.close()
    file.flush()
    assert read(tmp_path) == [("loss", 0, 1.0)]


def test_the_variable_of_the_launcher_makes_a_file_for_each_worker(tmp_path, monkeypatch):
    monkeypatch.setenv(EVENT_FILES, str(tmp_path))
    monkeypatch.setenv("TELEGRAD_WORKER", "trainer1")
    opened = []
    event_files = sys.modules["telegrad.core.recording.event_files"]
    monkeypatch.setattr(event_files, "log_to", lambda folder, make=event_files.log_to: opened.append(make(folder)))
    tg.log(loss=1)
    tg.log(other=2)
    (file,) = opened
    file.close()
    assert read(tmp_path / "trainer1") == [("loss", 0, 1.0), ("other", 0, 2.0)]


def test_a_folder_that_cannot_be_made_is_an_error_here_and_a_warning_in_a_worker(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        tg.log_to(tmp_path / "file")
    monkeypatch.setenv(EVENT_FILES, str(tmp_path / "file"))
    tg.log(loss=1)
    assert "no event file is written" in caplog.text and process_log.program_log().series()["loss"].count == 1


def test_without_the_library_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX.event_file_writer", None)
    with pytest.raises(ImportError, match=r"pip install tensorboardX"):
        tg.log_to(tmp_path)


def test_a_full_disk_ends_the_file_and_not_the_program(tmp_path, caplog):
    file = tg.log_to(tmp_path)

    def fail():
        raise OSError(28, "No space left on device")

    file._writer.flush = fail
    tg.log(loss=1)
    file._thread.join(20)
    assert not file._thread.is_alive() and "gets no more values" in caplog.text
    tg.log(loss=2)
    del file._writer.flush
    file.close()
    assert read(tmp_path) == [("loss", 0, 1.0)]
