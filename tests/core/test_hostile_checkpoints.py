"""Checkpoints that were made to do harm: what they ask to be hashed, printed or allocated is counted before it is done."""

import errno
import io
import itertools
import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from helpers.crafted_checkpoints import SEQUENCE, STORAGE, TENSOR, crafted
from telegrad.core.serialization import CheckpointError, files, load, save
from telegrad.core.serialization.safetensors_file import write_file

DEEP = b")" + b"\x85" * 1_000_000  # a tuple in a tuple, and so on
LAUGHS = b")" + b"2\x86" * 100  # twice in a tuple that is twice in a tuple, and so on
LISTS = (
    b"]qd0" + b"".join(b"](h%ch%ceq%c0" % (n - 1, n - 1, n) for n in range(101, 190)) + b"h\xbd"
)  # the same of lists
MANY = 10_000


def refused(described, **records):
    """Return the error's text of an archive with a pickle; the older form with it is refused too."""
    for start, make in ((SEQUENCE, io.BytesIO), (b"", lambda described: crafted(described, **records))):
        with pytest.raises(CheckpointError) as caught:
            load(make(start + b"\x80\4" + described + b"."))
    assert len(str(caught.value)) < 1000
    return str(caught.value)


@pytest.mark.parametrize(
    "value, why", [(DEEP, "nested more than 500 deep"), (LAUGHS, "more parts")], ids=["deep", "wide"]
)
@pytest.mark.parametrize(
    "use",
    [
        b"}%bK\1s",
        b"}(%bK\1u",
        b"\x8f(%b\x90",
        b"(%b\x91",
        b"c__builtin__\nset\n(](%betR",
        b"c__builtin__\nfrozenset\n((%bttR",
        b"ccollections\nOrderedDict\n(](](%bK\1eetR",
        b"ccollections\nCounter\n(](%betR",
        b"ctorch\ndevice\n(%btR",
        b"ctorch.serialization\n_get_layout\n(%btR",
        b"c_codecs\nencode\n(X\1\0\0\0a%btR",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(c__builtin__\nset\nN(](%betNtR",
    ],
)
def test_depth_and_sharing_are_bounded_before_anything_is_hashed(use, value, why):
    assert why in refused(use % value)


@pytest.mark.parametrize("value", [DEEP, LAUGHS, LISTS], ids=["deep", "wide", "lists"])
@pytest.mark.parametrize(
    "use", [b"%bX\1\0\0\0a\x93", b"K\1%b\x93", b"%b)R", b"%bQ", b"(X\1\0\0\0aX\1\0\0\0b%bK\1K\1tQ"]
)
def test_errors_print_nothing_that_is_deep_or_shared(use, value):
    refused(use % value)


@pytest.mark.parametrize("use", [b"ctorch\ndevice\n(%btR", b"ctorch\nSize\n(%btR", b"c_codecs\nencode\n(N%btR"])
def test_lists_in_lists_are_not_printed(use):
    assert "more parts" in refused(use % LISTS)


def test_a_size_is_as_deep_as_the_tuple_in_it():
    inner = b"ctorch\nSize\nq\1" + b")" + b"\x85" * 300 + b"\x85R"
    assert "nested more than 500 deep" in refused(inner + b"\x85" * 300)


@pytest.mark.parametrize(
    "key", [DEEP, LAUGHS, b"\x8b\x40\x9c\0\0" + bytes([255]) * 40_000], ids=["deep", "wide", "long"]
)
def test_names_of_storages_in_the_older_form(key):
    with pytest.raises(CheckpointError):
        load(io.BytesIO(SEQUENCE + b"\x80\2N.\x80\2](" + key + b"e."))


def test_keys_with_the_same_hash_are_counted(tmp_path):
    numbers = [(2**61 - 1) * n for n in range(1, 5000)]
    pairs = b"".join(b"\x8a\x0b" + n.to_bytes(11, "little") + b"N" for n in numbers)
    assert "same hash" in refused(b"}(" + pairs + b"u")
    assert "same hash" in refused_structure(tmp_path, {"dict": [[n, None] for n in numbers]})


def refused_structure(folder, structure, **arrays):
    """Return the error's text of a file of ours with a structure around arrays."""
    text = structure if isinstance(structure, str) else json.dumps(structure)
    write_file(str(folder / "made"), arrays, {"telegrad.structure": text})
    with pytest.raises(CheckpointError) as caught:
        load(folder / "made")
    return str(caught.value)


@pytest.mark.parametrize("depth", [1000, 1_000_000])
def test_depth_of_a_structure(depth, tmp_path):
    text = '{"dict": [[' + '{"tuple": [' * depth + "]}" * depth + ", 0]]}"
    assert "structure that this version does not know" in refused_structure(tmp_path, text)


# Memory and time.


def peak(file):
    """Return how many bytes are allocated at most while a file is read, or refused."""
    file.seek(0)
    tracemalloc.start()
    try:
        load(file)
    except CheckpointError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most


def archive(records, way=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", way) as made:
        for name, content in records.items():
            made.writestr(name, content)
    file.seek(0)
    return file


BIG = 48 << 20
KEYS = [b"%c" % n for n in range(97, 117)]


@pytest.mark.parametrize("way", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("name", ["data.pkl", "byteorder", "data/0"])
def test_an_archive_that_expands(name, way):
    described = TENSOR.replace(b"cpuK\2", b"cpuJ" + struct.pack("<I", BIG // 4)) % b"K\0K\2\x85K\1\x85"
    records = {"x/data.pkl": described, "x/byteorder": b"little", f"x/{name}": b"\0" * BIG}
    assert peak(archive(records, way)) < 20 << 20


def overlapping(records, common):
    """Return an archive in which each record is its own content and then all that follows it in the file."""
    content, entries = common, []
    for name, own in reversed(records.items()):
        content = own + content
        fields = struct.pack("<HIIIHH", 0x21, zlib.crc32(content), len(content), len(content), len(name), 0)
        content = b"PK\3\4" + struct.pack("<HHHH", 20, 0, 0, 0) + fields + name + content
        entries.append((b"PK\1\2" + struct.pack("<HHHHH", 20, 20, 0, 0, 0) + fields + bytes(10), name, len(content)))
    places = [entry + struct.pack("<I", len(content) - left) + name for entry, name, left in entries]
    size, count = len(b"".join(places)), len(places)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, size, len(content), 0)
    return io.BytesIO(content + b"".join(places[::-1]) + b"PK\5\6" + end)


def test_an_archive_whose_records_overlap():
    size = 4 << 20
    storages = b"".join(
        STORAGE.replace(b"\1\0\0\x000", b"\1\0\0\0" + key).replace(b"K\2", b"J" + struct.pack("<I", size // 4))
        for key in KEYS
    )
    described = b"\x80\2](" + storages + b"e."
    file = overlapping({b"x/data.pkl": described, **{b"x/data/" + key: b"" for key in KEYS}}, bytes(size))
    assert peak(file) < 4 * size + (16 << 20) + (1 << 20)
    with pytest.raises(CheckpointError, match=r"three times its size|Overlapped"):
        load(io.BytesIO(file.getvalue()))


def test_copies_of_one_text():
    text = b"X" + struct.pack("<I", MANY) + b"x" * MANY
    names = b"c_codecs\nencode\nq\1" + text + b"q\2X\6\0\0\0latin1q\3"
    described = b"\x80\2](" + names + b"h\1h\2h\3\x86R" * MANY + b"e."
    assert peak(crafted(described)) < 16 << 20


def test_conjugates_of_one_element_that_is_there_often():
    flags = b"\x89}}X\4\0\0\0conj\x88s"
    assert load(crafted(TENSOR % (b"K\0J\xff\xff\xff\x7f\x85K\0\x85\x89}}"), _0=bytes(8))).shape == (2**31 - 1,)
    described = TENSOR % (b"K\0J\xff\xff\xff\x7f\x85K\0\x85" + flags)
    assert peak(crafted(described, _0=bytes(8))) < 1 << 20


def test_sparse_tensors_of_one_element_that_is_there_often():
    length = b"J" + struct.pack("<I", 1 << 30)
    indices = TENSOR[2:-1].replace(b"Float", b"Long").replace(b"K\2t", b"K\1t") % (
        b"K\0K\1" + length + b"\x86K\0K\0\x86"
    )
    values = TENSOR[2:-1].replace(b"\x000X", b"\x001X") % (b"K\0" + length + b"\x85K\0\x85")
    layout = b"ctorch.serialization\n_get_layout\n(X\x10\0\0\0torch.sparse_cootR"
    described = b"ctorch._utils\n_rebuild_sparse_tensor\n(" + layout + b"(" + indices + values + b"K\2\x85ttR"
    assert peak(crafted(b"\x80\2" + described + b".", _0=bytes(8), _1=bytes(8))) < 1 << 20
    assert "three times its size" in refused(described, _0=bytes(8), _1=bytes(8))


def test_sparse_tensors_over_the_same_arrays_are_counted(tmp_path):
    parts = [{"tensor": name, "object": n, "grad": False} for n, name in enumerate(("indices", "values"))]
    made = [{"sparse": parts, "size": [9], "coalesced": True, "object": n} for n in range(2, 2000)]
    arrays = {"indices": np.zeros((1, 100_000), np.int64), "values": np.zeros(100_000)}
    assert "three times its size" in refused_structure(tmp_path, made, **arrays)


def test_a_text_that_is_said_to_be_long():
    for length in (1 << 30, 1 << 40, 1 << 62):
        described = b"\x8d" + struct.pack("<Q", length) + b"x"
        refused(described)
        assert peak(io.BytesIO(SEQUENCE + described)) < 1 << 20


# Errors.


@pytest.mark.parametrize(
    "old, new",
    [
        (b"PK\1\2\x14\3\x14\0\0\0\0\0", b"PK\1\2\x14\3\x14\0\1\0\0\0"),  # encrypted
        (b"PK\1\2\x14\3\x14\0\0\0\0\0", b"PK\1\2\x14\3\x14\0\0\0\x63\0"),  # compressed in an unknown way
        (b"PK\1\2\x14\3\x14\0\0\0\0\0", b"PK\1\2\x14\3\xff\0\0\0\0\0"),  # for a later version
        (b"PK\1\2\x14\3\x14\0\0\0\0\0", b"PK\1\2\x14\3\x14\0\0\0\x08\0"),  # not compressed, as is said
    ],
)
def test_archives_that_cannot_be_read(old, new):
    content = crafted(b"\x80\2N.").getvalue()
    assert old in content
    with pytest.raises(CheckpointError, match="cannot be read as a checkpoint"):
        load(io.BytesIO(content.replace(old, new)))


@pytest.mark.parametrize(
    "error", [NotImplementedError, OverflowError("too large"), EOFError, KeyError((1, 2)), SystemError]
)
def test_errors_of_any_reader_are_those_of_a_checkpoint(error, monkeypatch):
    def fail(file):
        raise error

    monkeypatch.setattr(files, "read_torch_file", fail)
    with pytest.raises(CheckpointError, match=r"cannot be read as a checkpoint: .") as caught:
        load(crafted(b"\x80\2N."))
    assert type(caught.value.__cause__) is type(error) or type(caught.value.__cause__) is error


@pytest.mark.parametrize("error", [OSError(errno.EIO, "the disk is broken"), MemoryError()])
def test_errors_of_the_machine_stay_what_they_are(error, monkeypatch):
    def fail(file):
        raise error

    monkeypatch.setattr(files, "read_torch_file", fail)
    with pytest.raises(type(error)):
        load(crafted(b"\x80\2N."))


# Files that were made to do no harm.


@pytest.mark.parametrize("form", ["safetensors", "torch"])
def test_large_tables_with_keys_of_tuples(form, tmp_path):
    signs = {point: sum(point) for point in itertools.product((-1, -2), repeat=10)}  # all of them have the same hash
    table = {(n, (n + 1, 0.5)): n for n in range(300)}
    save([signs, table], tmp_path / "table", format=form)
    assert load(tmp_path / "table") == [signs, table]


def test_a_tuple_that_is_a_key_of_many_dicts():
    key = b"(" + b"K\1" * 30 + b"tq\1"
    assert load(crafted(b"\x80\2](" + key + b"}h\1Ns" * 2000 + b"e."))[-1] == {(1,) * 30: None}


def test_an_archive_that_was_packed_again_with_compression():
    rng = np.random.default_rng(0)
    described = TENSOR % b"K\0K\2\x85K\1\x85"
    assert load(archive({"x/data.pkl": described, "x/data/0": rng.bytes(8)})).shape == (2,)
