"""The source archive of a release does not depend on when, where and by whom it was built."""

import os
import tarfile

from telegrad.tools.release import digests, repack

SECONDS = 1_700_000_000


def pack(folder, names, changed):
    """An archive of these files, changed at this time."""
    (folder / "dist").mkdir(parents=True)
    with tarfile.open(folder / "dist" / "a-1.tar.gz", "w:gz") as archive:
        for name in names:
            (folder / name).write_text(f"contents of {name}")
            os.utime(folder / name, (changed, changed))
            (folder / name).chmod(0o600 if changed else 0o644)
            archive.add(folder / name, f"a-1/{name}")
    return folder / "dist" / "a-1.tar.gz"


def test_equal_contents_are_equal_files(tmp_path):
    first, second = pack(tmp_path / "one", ["b.py", "a.py"], 0), pack(tmp_path / "two", ["a.py", "b.py"], 9)
    assert first.read_bytes() != second.read_bytes()
    for file in (first, second):
        repack(file, SECONDS)
    assert digests(first.parent) == digests(second.parent)
    with tarfile.open(first) as archive:
        assert [(member.name, member.mtime) for member in archive] == [("a-1/a.py", SECONDS), ("a-1/b.py", SECONDS)]
        assert archive.extractfile("a-1/a.py").read() == b"contents of a.py"
