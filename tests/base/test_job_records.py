"""Records of running workers: private, checked when they are read, and removed when their process has ended."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from telegrad.base.job_folder import JobFolder, job_folders, new_records_folder
from telegrad.base.job_records import (
    FORMAT,
    MOST_RECORD_BYTES,
    JobRecord,
    own_facts,
    parse_record,
    read_records,
    remove_record,
    sweep_records,
    write_record,
)
from telegrad.base.processes import caught_signals, process_status, process_user


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The folder of this test's records."""
    monkeypatch.setenv("TELEGRAD_JOBS_DIR", str(tmp_path / "private" / "jobs"))
    return tmp_path / "private" / "jobs"


@pytest.fixture
def folder(path):
    with new_records_folder() as made:
        yield made


def record(**changes):
    facts = own_facts() | {
        "stem": "1-a",
        "worker": "w",
        "rank": 0,
        "world_size": 1,
        "job": "j",
        "program": "p.py",
        "log": "",
    }
    return JobRecord(**facts | {"dump_signal": 0, "began": 1.0, "version": "0"} | changes)


def test_a_record_is_found_and_removed(folder, path):
    write_record(folder, record())
    write_record(folder, record(joined=True))
    assert read_records() == [(path, record(joined=True))]
    assert path.stat().st_mode & 0o777 == 0o700 and (path / "1-a.json").stat().st_mode & 0o777 == 0o600
    remove_record(folder, "1-a")
    assert read_records() == [] and list(path.iterdir()) == []


def test_a_folder_that_others_may_use_is_refused(path):
    path.mkdir(parents=True)
    path.chmod(0o755)
    with pytest.raises(PermissionError, match="mode 755"):
        new_records_folder()
    with pytest.raises(PermissionError, match="TELEGRAD_JOBS_DIR"):
        read_records()


def test_a_link_to_a_folder_is_not_followed(path, tmp_path):
    (tmp_path / "other").mkdir(mode=0o700)
    path.parent.mkdir()
    path.symlink_to(tmp_path / "other")
    with pytest.raises(OSError):
        new_records_folder()
    with pytest.raises(PermissionError, match="TELEGRAD_JOBS_DIR"):
        read_records()
    assert list((tmp_path / "other").iterdir()) == []


def test_links_pipes_and_what_is_no_record_are_ignored(folder, path, tmp_path):
    (tmp_path / "elsewhere.json").write_text(json.dumps(asdict(record(stem="link"))))
    (path / "link.json").symlink_to(tmp_path / "elsewhere.json")
    os.mkfifo(path / "pipe.json")
    (path / "folder.json").mkdir()
    for name, text in (("empty", ""), ("list", "[]"), ("deep", "[" * 60_000), ("long", " " * MOST_RECORD_BYTES + "{}")):
        (path / f"{name}.json").write_text(text)
    write_record(folder, record())
    assert [each.stem for _, each in read_records()] == ["1-a"]
    assert len(list(path.iterdir())) == 8, "what is not ours to judge stays"


def test_a_record_of_a_process_that_ended_is_removed(folder, path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_record(folder, record(process_id=ended.pid))
    (path / "1-a.sock").touch()
    assert read_records() == [] and list(path.iterdir()) == []


def test_records_of_ended_processes_are_swept_when_there_are_many(folder, path, monkeypatch):
    for number in range(3):
        write_record(folder, record(stem=f"{number}-a", process_start=1))
    sweep_records(folder)
    assert len(list(path.iterdir())) == 3
    monkeypatch.setattr("telegrad.base.job_records.MANY_FILES", 2)
    write_record(folder, record(stem="9-a"))
    sweep_records(folder)
    assert [each.name for each in path.iterdir()] == ["9-a.json"]


def test_a_record_that_names_a_later_process_or_another_users_is_removed(folder, path, monkeypatch):
    write_record(folder, record(process_start=own_facts()["process_start"] + 1))
    assert read_records() == []
    write_record(folder, record())
    monkeypatch.setattr("telegrad.base.job_records.process_user", lambda process_id: os.geteuid() + 1)
    assert read_records() == [] and list(path.iterdir()) == []


def test_a_record_of_another_machine_is_neither_shown_nor_removed(folder, path):
    write_record(folder, record(place="another start of another machine", process_id=2**22 + 1))
    assert read_records() == [] and [each.name for each in path.iterdir()] == ["1-a.json"]


def test_a_record_of_another_version_is_shown_as_such(folder):
    facts = asdict(record(format=FORMAT + 1)) | {"news": [1, 2]}
    folder.write("1-a.json", json.dumps(facts).encode())
    ((_, found),) = read_records()
    assert not found.readable and found.worker == "w"


@pytest.mark.parametrize(
    "change",
    [
        {"stem": "2-b"},
        {"rank": "0"},
        {"rank": True},
        {"began": float("nan")},
        {"began": float("inf")},
        {"began": 10**400},
        {"began": -1},
        {"process_id": 1},
        {"process_id": -1},
        {"joined": 1},
        {"job": None},
    ],
)
def test_a_record_with_other_values_is_refused(change):
    with pytest.raises(ValueError):
        parse_record(json.dumps(asdict(record()) | change).encode(), "1-a")


def test_a_record_without_a_value_is_refused():
    facts = asdict(record())
    del facts["worker"]
    with pytest.raises(ValueError, match="worker"):
        parse_record(json.dumps(facts).encode(), "1-a")


def test_a_file_is_written_in_one_step_or_not_at_all(folder, path, monkeypatch):
    write_record(folder, record())

    def full(*_, **__):
        raise OSError(28, "the disk is full")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="full"):
        write_record(folder, replace(record(), joined=True))
    assert [each.name for each in path.iterdir()] == ["1-a.json"] and not read_records()[0][1].joined


def test_folders_are_looked_for_in_the_session_and_at_home(monkeypatch, tmp_path):
    monkeypatch.delenv("TELEGRAD_JOBS_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert job_folders() == [tmp_path / "runtime/telegrad/jobs", tmp_path / "home/.cache/telegrad/jobs"]
    with new_records_folder() as made:
        assert made.path == tmp_path / "home/.cache/telegrad/jobs", "the session has no folder"
    (tmp_path / "runtime").mkdir(mode=0o700)
    with new_records_folder() as made:
        assert made.path == tmp_path / "runtime/telegrad/jobs"
        with JobFolder(made.path) as again:
            assert again.names() == []


def test_processes_are_described():
    mine = process_status(os.getpid())
    assert mine.state == "running" and mine.start > 0 and mine.memory_bytes > 1 << 20 and mine.cpu_seconds > 0
    assert process_user(os.getpid()) == os.geteuid() and caught_signals(os.getpid())
    assert process_status(2**22 + 1) is None and process_user(2**22 + 1) == -1 and caught_signals(2**22 + 1) == 0
