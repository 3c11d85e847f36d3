"""save and load: what comes back, that files are whole or refused, and what cannot be saved."""

import io
import json
import os
import struct
import subprocess
import sys
import threading
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from telegrad import nn, optim
from telegrad.base.errors import TelegradError
from telegrad.core import Tensor, randn, tensor, zeros
from telegrad.core.serialization import CheckpointError, load, save
from telegrad.core.serialization.safetensors_file import write_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


def round_trip(obj, path):
    save(obj, path)
    return load(path)


@pytest.mark.parametrize(
    "obj",
    [
        None,
        True,
        12345678901234567890,
        "text with ünïcode, \U0001f600 and a lone \ud83d",
        [1, 2.5, "three", None, False, []],
        {"a": {"b": (1, (2,), [3])}, 1: "int", 2.5: "float", None: "none", False: "bool", ("k", 0): "tuple", "": {}},
        {"float": 1, "tuple": [2], "dict": 3, "tensor": "4"},
        (1e-300, 1 / 3, -0.0, float("inf"), -float("inf")),
        [b"", b"\0\xffbytes", 1 - 2.5j, complex("nan+infj"), complex(-0.0, 1e-300)],
        [OrderedDict(b=1, a=OrderedDict()), {"dict": [], "bytes": b"x", "complex": [1, 2], "ordered": 0, "object": {}}],
    ],
    ids=str,
)
def test_plain_objects(obj, path):
    back = round_trip(obj, path)
    assert repr(back) == repr(obj) and (back == obj or "nan" in repr(obj))


def test_not_a_number(path):
    assert np.isnan(round_trip([float("nan")], path)[0])


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "uint32",
        "int32",
        "uint64",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        ">i4",
        ">f8",
    ],
)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3)])
def test_arrays(dtype, shape, path):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    back = round_trip({"array": array, "tensor": Tensor(array), "scalar": array.dtype.type(1)}, path)
    assert type(back["array"]) is np.ndarray and type(back["tensor"]) is Tensor
    assert type(back["scalar"]) is array.dtype.type and back["scalar"] == 1
    for found in (back["array"], back["tensor"].numpy()):
        assert found.shape == shape and found.dtype == array.dtype.newbyteorder("=") and found.flags.writeable
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_types_of_another_package(name, shape, path):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    found = round_trip([Tensor(array), Tensor(array.T)], path)
    for made, expected in zip(found, [array, array.T]):
        assert made.dtype == dtype and made.shape == expected.shape
        np.testing.assert_array_equal(made.numpy().astype("float32"), expected.astype("float32"))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2"])
def test_a_type_of_a_package_that_is_not_there(name, path):
    save(Tensor(np.ones(2, getattr(pytest.importorskip("ml_dtypes"), name))), path)
    program = f"import sys; sys.modules['ml_dtypes'] = None; import telegrad; telegrad.load({str(path)!r})"
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"ImportError: the dtype {name} needs the package ml_dtypes" in failed.stderr


def test_scalars_do_not_take_one_anothers_place(path):
    scalars = [np.complex128(n) for n in range(20)] + [np.float64(n) for n in range(20)]
    assert round_trip(scalars, path) == scalars


def test_views_and_strides(path):
    array = np.arange(24.0).reshape(4, 6)
    back = round_trip([array[::2, 1:], array.T, array[1], np.broadcast_to(np.float32(3), (2, 2))], path)
    for found, expected in zip(back, [array[::2, 1:], array.T, array[1], np.full((2, 2), 3, "float32")]):
        np.testing.assert_array_equal(found, expected)


def test_requires_grad_is_kept(path):
    weight = nn.Parameter(randn(2))
    back = round_trip([weight, weight.detach(), weight * 2], path)
    assert [t.requires_grad for t in back] == [True, False, True] and all(t.is_leaf for t in back)


def test_what_is_shared_stays_shared(path):
    one, other = randn(3), randn(3)
    back = round_trip({"a": one, "b": [one], "c": one.detach(), "d": one.numpy(), "e": other, "f": zeros(0)}, path)
    assert back["a"] is back["b"][0] and back["c"] is not back["a"]
    back["a"].fill_(7)
    assert back["c"].tolist() == back["d"].tolist() == [7, 7, 7] and back["e"].tolist() == other.tolist()
    assert back["c"]._version == back["a"]._version
    assert set(load_file(path)) == {"a", "e", "f"}


def test_tied_weights_of_a_module(path):
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    state = round_trip(net.state_dict(), path)
    assert np.shares_memory(state["0.weight"].numpy(), state["1.weight"].numpy())
    nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).load_state_dict(state)


def test_a_training_resumes(path):
    def start():
        net = nn.Linear(2, 1)
        return net, optim.Adam(net.parameters(), lr=0.1)

    def step(net, optimizer):
        optimizer.zero_grad()
        (net(tensor([[1.0, 2.0]])) ** 2).sum().backward()
        optimizer.step()

    net, optimizer = start()
    step(net, optimizer)
    save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, path)
    step(net, optimizer)
    state = load(path)
    again, other = start()
    again.load_state_dict(state["model"])
    other.load_state_dict(state["optimizer"])
    step(again, other)
    assert state["epoch"] == 1
    np.testing.assert_array_equal(again.weight.detach().numpy(), net.weight.detach().numpy())


# -- the format


def test_others_read_the_tensors(path):
    save(
        {"model": {"w": tensor([1.0, 2.0])}, "model.w": tensor([3]), "__metadata__": zeros(1), "n": [zeros(2, 1)]}, path
    )
    found = load_file(path)
    assert found["model.w"].tolist() == [1, 2] and found["model.w~2"].tolist() == [3]
    assert found["n.0"].shape == (2, 1) and len(found) == 4


def test_keys_that_are_no_text(path):
    assert round_trip({"\ud83d": zeros(1), "\0\n": zeros(2)}, path).keys() == {"\ud83d", "\0\n"}


def test_a_file_of_others(path):
    save_file({"b": np.ones(2), "a": np.zeros((1, 2), "int8")}, path, {"format": "pt"})
    found = load(path)
    assert set(found) == {"a", "b"} and found["b"].tolist() == [1, 1] and found["a"].dtype == np.int8


def test_elements_are_aligned(path):
    save([np.ones(3, "int8"), np.ones(3), np.ones(1, "int16")], path)
    raw = path.read_bytes()
    assert (8 + int.from_bytes(raw[:8], "little")) % 8 == 0


# -- files are whole or refused


def test_every_altered_byte_and_every_cut_is_noticed(path):
    save({"w": tensor([1.0, 2.0]), "n": [1, "x", None], "b": np.array([True])}, path)
    raw = path.read_bytes()
    altered = [raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :] for at in range(len(raw))]
    for content in [*altered, *(raw[:at] for at in range(len(raw))), raw + b"\0"]:
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors"):
            load(path)


def test_the_error_says_what_to_do(path):
    save(randn(100), path)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(RuntimeError, match=r"checkpoint\.safetensors is damaged: .*use another copy") as caught:
        load(path)
    assert isinstance(caught.value, TelegradError)


@pytest.mark.parametrize("seed", range(3))
def test_larger_files_that_were_cut_or_altered(path, seed):
    save({"a": randn(100_000), "b": {"c": tensor(range(1000))}}, path)
    raw, random = path.read_bytes(), np.random.default_rng(seed)
    for _ in range(60):
        cut = raw[: random.integers(len(raw))]
        at, count = random.integers(len(raw)), random.integers(1, 9)
        altered = raw[:at] + random.bytes(count) + raw[at + count :]
        dropped = raw[:at] + raw[at + count :]
        for content in (cut, altered, dropped, raw + random.bytes(count)):
            path.write_bytes(content)
            if content != raw:
                with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors"):
                    load(path)


def header(entries, data=b"", length=None):
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="U8", shape=(1,), offsets=(0, 1)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        header({}, length=1 << 62),
        header({}, length=3),
        header(b"[1]"),
        header(b"\xff\xfe"),
        header(b"[" * 100_000),
        header(b'{"a": %b, "a": %b}' % ((json.dumps(entry()).encode(),) * 2), b"x"),
        header({"a": 3}),
        header({"a": {}}),
        header({"a": entry("Q8")}, b"x"),
        header({"a": entry(shape=(2,))}, b"x"),
        header({"a": entry(shape=(-1, -1))}, b"x"),
        header({"a": entry(shape=("1",))}, b"x"),
        header({"a": entry(shape=3)}, b"x"),
        header({"a": entry(shape=(1 << 60,), offsets=(0, 1 << 60))}, b"x"),
        header({"a": entry(offsets=(1, 2))}, b"xy"),
        header({"a": entry(), "b": entry()}, b"xy"),
        header({"a": entry(), "b": entry(offsets=(1, 2))}, b"x"),
        header({"a": entry()}, b"xy"),
        header({"__metadata__": 3}),
        header({"__metadata__": {"telegrad.sha256": 3}}),
        header({"__metadata__": {"telegrad.sha256": ""}}),
        header({"__metadata__": {"telegrad.structure": "1"}}),
    ],
    ids=range(24),
)
def test_files_that_are_no_checkpoints(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors (cannot be read|is damaged)"):
        load(path)


@pytest.mark.parametrize(
    "structure",
    ["{}", '{"new": 1}', '{"tensor": "none", "object": 0}', '{"bytes": "*"}', "[", '{"scalar": "t"}'],
)
def test_a_structure_of_another_version(path, structure):
    write_file(str(path), {"t": np.ones(1)}, {"telegrad.structure": structure})
    with pytest.raises(CheckpointError, match="structure that this version does not know"):
        load(path)


def test_open_files(path):
    memory = io.BytesIO()
    memory.write(b"before")
    save({"w": tensor([1.0]), "n": 1}, memory)
    assert memory.tell() == len(memory.getvalue())
    memory.seek(6)
    assert load(memory)["w"].tolist() == [1]
    with path.open("wb") as file:
        save([zeros(3)], file)
    with path.open("rb") as file:
        assert load(file, map_location="cpu", weights_only=False)[0].tolist() == [0, 0, 0]
    with path.open("r+b") as file:
        file.truncate(50)
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors cannot be read"):
            load(file)
    with pytest.raises(ValueError, match=r"tensors are on the CPU.*'cuda'"):
        load(path, "cuda")


def test_loaded_tensors_have_memory_of_their_own(path):
    small, large = round_trip([zeros(1), zeros(100_000)], path)
    assert small.numpy().base is None or small.numpy().base.nbytes == 4
    assert large.numpy().flags.writeable and large.numpy().flags.aligned


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        save(1, tmp_path / "no folder" / "x")


def test_a_failed_save_leaves_the_former_file(path, monkeypatch):
    save("former", path)

    def fail(descriptor):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        save("new", path)
    assert os.listdir(path.parent) == [path.name]
    assert load(path) == "former"


def test_a_full_disk_is_an_os_error():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no device that is always full")
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space"):
        save(zeros(3), full)


def test_the_umask_decides_who_may_read(path):
    before = os.umask(0o027)
    try:
        save(zeros(3), path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_readers_see_one_version_or_the_other(path):
    save([0, np.zeros(1000)], path)

    def keep_saving():
        for number in range(1, 30):
            save([number, np.full(1000, number)], path)

    writer = threading.Thread(target=keep_saving)
    writer.start()
    while writer.is_alive():
        number, array = load(path)
        assert (array == number).all()
    writer.join()
    assert load(path)[0] == 29


def test_a_training_that_goes_on_meanwhile_spoils_nothing(path):
    weight, done = np.zeros(200_000), threading.Event()

    def train():
        while not done.is_set():
            np.add(weight, 1, out=weight)

    trainer = threading.Thread(target=train)
    trainer.start()
    try:
        for _ in range(5):
            save(weight, path)
            load(path)
    finally:
        done.set()
        trainer.join()


def test_links_and_relative_paths(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    save("first", "checkpoint.safetensors")
    path.with_name("link").symlink_to(path)
    save("second", str(path.with_name("link")))
    assert path.with_name("link").is_symlink() and load("checkpoint.safetensors") == "second"


# -- what cannot be saved


class Own:
    pass


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    "obj, message",
    [
        ({"model": [0, 1, 2, Own()]}, r"checkpoint\['model'\]\[3\] is of class Own"),
        (Own(), "^checkpoint is of class Own"),
        ({"a": ({1, 2},)}, r"checkpoint\['a'\]\[0\] is of class set"),
        ({"net": nn.Linear(1, 1)}, r"checkpoint\['net'\] is of class Linear, .*save state_dict\(\)"),
        ({"x": {b"key": 1}}, r"checkpoint\['x'\] has a key of class bytes"),
        ([np.array(["a"])], r"checkpoint\[0\] is an array of dtype <U1"),
        ({1: np.array([Own()])}, r"checkpoint\[1\] is an array of dtype object"),
        ([Pair(1, 2)], r"checkpoint\[0\] is of class Pair, .*of a named tuple, save its _asdict\(\)"),
    ],
    ids=["nested", "object", "set", "module", "key", "array", "objects", "named tuple"],
)
def test_what_cannot_be_saved_is_named(obj, message, path):
    with pytest.raises(TypeError, match=message):
        save(obj, path)
    assert not os.listdir(path.parent)


def test_containers_that_hold_themselves(path):
    cycle = {"a": []}
    cycle["a"].append(cycle)
    with pytest.raises(ValueError, match=r"checkpoint\['a'\]\[0\] holds itself"):
        save(cycle, path)
    twice = [1]
    assert round_trip([twice, twice], path) == [[1], [1]]
