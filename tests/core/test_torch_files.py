"""PyTorch's checkpoints: those it wrote are read, ours have its form, and nothing in a file is run."""

import collections
import io
import os
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import telegrad as tg
from helpers.checkpoint_models import residual_network, transformer
from helpers.crafted_checkpoints import SEQUENCE, TENSOR, crafted
from telegrad.core.serialization import CheckpointError, load, save

FILES = Path(__file__).parents[1] / "golden" / "checkpoints"


@pytest.mark.parametrize("build", [residual_network, transformer])
def test_a_checkpoint_of_a_model_gives_the_same_outputs_and_trains_on(build):
    found = load(FILES / f"{build.__name__}.pt")
    model = build(tg.nn)
    optimizer = tg.optim.Adam(model.parameters(), lr=0.01)
    assert model.load_state_dict(found["model"]) == ([], [])
    optimizer.load_state_dict(found["optimizer"])
    outputs = model.eval()(*found["inputs"])
    np.testing.assert_allclose(outputs.detach(), found["outputs"], rtol=1e-5, atol=1e-5)
    outputs.pow(2).mean().backward()
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"] == 3


@pytest.fixture(params=["objects", "older"])
def objects(request):
    return load(FILES / f"{request.param}.pt")


def test_dtypes():
    for made in load(FILES / "objects.pt")["dtypes"]:
        np.testing.assert_array_equal(made, np.ones(2, made.dtype))


def test_tensors(objects):
    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    for found, expected in zip((objects["base"], *objects["views"]), (base, base.T, base[1], base[:, ::2])):
        assert found.stride() == tuple(step // 4 for step in expected.strides)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(objects["conjugated"], [1 - 2j, 3 + 4j])
    np.testing.assert_array_equal(objects["negated"], [-2, 4])
    np.testing.assert_array_equal(objects["bfloat16"].float(), [1.5, -2])
    assert objects["scalar"].shape == () and objects["scalar"] == 7
    assert objects["empty"].shape == (0, 3)
    np.testing.assert_array_equal(objects["sparse"].to_dense(), np.eye(2))
    assert objects["parameter"].requires_grad and objects["parameter"].is_leaf
    assert not objects["attributes"].requires_grad


def test_tensors_that_shared_memory_share_it(objects):
    objects["base"].zero_()
    assert all(view.sum() == 0 for view in objects["views"])
    assert objects["twice"][0] is objects["twice"][1]


def test_other_objects(objects):
    size, place, dtype, ordered, members, number, octets, mutable = objects["kinds"]
    assert (size, place, dtype, members, number) == ((2, 3), "cpu", tg.float16, {1, 2}, 1j)
    assert (type(ordered), ordered, octets, mutable) == (OrderedDict, {"a": 1}, b"\xff", bytearray(b"x"))
    assert objects["plain"] == (None, True, -5, 2**40, 10**30, 2.5, "ünïcode", [], {"a": ()})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("module", r"torch.nn.modules.container.Sequential.*nothing of it was run.*state_dict\(\)"),
        ("rows", "sparse_csr"),
        ("script", "TorchScript"),
    ],
)
def test_what_is_not_read_says_why(name, why):
    with pytest.raises(CheckpointError, match=rf"{name}\.pt .*{why}"):
        load(FILES / f"{name}.pt")


# Writing.


def written(obj):
    file = io.BytesIO()
    save(obj, file, format="torch")
    return file


def round_trip(obj):
    file = written(obj)
    file.seek(0)
    return load(file)


def test_what_is_written_is_read_again():
    obj = load(FILES / "objects.pt")
    del obj["kinds"][-1]  # a bytearray, which only PyTorch writes
    again = round_trip(obj)
    assert list(again) == list(obj)
    assert again["kinds"] == obj["kinds"] and again["plain"] == obj["plain"]
    for kind in ("dtypes", "views", "twice"):
        for found, expected in zip(again[kind], obj[kind]):
            assert (found.dtype, found.stride(), found.tolist()) == (
                expected.dtype,
                expected.stride(),
                expected.tolist(),
            )
    assert again["twice"][0] is again["twice"][1]
    again["base"].zero_()
    assert again["views"][2].sum() == 0
    assert again["parameter"].requires_grad
    np.testing.assert_array_equal(again["sparse"].to_dense(), np.eye(2))


def test_tensors_that_no_strides_of_pytorch_describe_are_copied():
    turned = tg.from_numpy(np.arange(3.0)[::-1])
    assert round_trip(turned).tolist() == [2, 1, 0]


def test_a_state_dict_keeps_the_versions_of_its_modules():
    state = OrderedDict(weight=tg.ones(1), shape=tg.ones(2, 3).shape)
    state._metadata = {"": {"version": 1}}
    again = round_trip(state)
    assert again._metadata == {"": {"version": 1}}
    assert type(again["shape"]) is tg.Size and again["shape"] == (2, 3)


class Foreign(pickle.Unpickler):
    """Reader that is not ours, in which each global is a tuple of its names and its arguments."""

    def find_class(self, module, name):
        return collections.OrderedDict if name == "OrderedDict" else lambda *arguments: (module, name, *arguments)

    def persistent_load(self, identity):
        return identity[2:]


def test_a_standard_unpickler_reads_the_same():
    weight = tg.ones(2, 3)
    with zipfile.ZipFile(written({"weight": weight, "again": weight, "text": "x" * 300})) as archive:
        described = archive.read("checkpoint/data.pkl")
        assert archive.read("checkpoint/data/0") == np.ones(6, np.float32).tobytes()
        assert archive.read("checkpoint/version") == b"3\n"
    found = Foreign(io.BytesIO(described)).load()
    rebuilt = ("torch._utils", "_rebuild_tensor_v2", ("0", "cpu", 6), 0, (2, 3), (3, 1), False, OrderedDict())
    assert found == {"weight": rebuilt, "again": rebuilt, "text": "x" * 300}
    assert found["weight"] is found["again"]
    pickletools.dis(described, io.StringIO())  # raises if a place of the memo is read before it is written


@pytest.mark.parametrize("wrong", [np.ones(1), np.float64(1), object(), print])
def test_objects_that_torch_would_not_read_are_refused(wrong):
    with pytest.raises(TypeError, match=r"checkpoint\['a'\]\[0\] is of class"):
        written({"a": [wrong]})


def test_wrong_arguments(tmp_path):
    holds_itself = []
    holds_itself.append(holds_itself)
    with pytest.raises(ValueError, match=r"checkpoint\[0\] holds itself"):
        written(holds_itself)
    with pytest.raises(ValueError, match="format must be 'safetensors' or 'torch', and you gave 'onnx'"):
        save(1, tmp_path / "x", format="onnx")
    with pytest.raises(ValueError, match="map_location"):
        load(FILES / "objects.pt", map_location={"cuda:0": "cuda:1"})


@pytest.mark.parametrize("where", ["cpu", tg.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage])
def test_map_location_may_be_anything_that_means_the_cpu(where):
    assert "model" in load(FILES / "transformer.pt", map_location=where)


# Files that somebody made to do harm.


class Evil:
    def __reduce__(self):
        return os.system, ("touch harm",)


@pytest.mark.parametrize(
    "described",
    [
        pickle.dumps(Evil(), 2),
        pickle.dumps({"weight": [Evil()]}, 4),
        b"\x80\2cbuiltins\neval\n(X\4\0\0\0exittR.",
        b"\x80\2cbuiltins\ngetattr\n0.",
        b"\x80\2(cos\nsystem\nX\1\0\0\0xo.",
        b"(X\1\0\0\0xios\nsystem\n.",
        b"\x80\2ctorch._utils\n_rebuild_tensor\n}X\1\0\0\0xK\1sb.",  # attributes of one of our functions
        b"\x80\2ctorch.nn.parameter\nParameter\n)\x81.",
        b"\x80\2ctorch\nfloat32\n)R.",
        b"\x80\2K\1)R.",
        b"\x80\2\x82\1.",  # the registry of extensions
    ],
)
def test_no_code_runs(described, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in (crafted(described), io.BytesIO(described), io.BytesIO(SEQUENCE + described)):
        with pytest.raises(CheckpointError):
            load(file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        b"K\1K\2\x85K\1\x85",
        b"K\0K\2\x85K\2\x85",
        b"J\xff\xff\xff\xffK\1\x85K\1\x85",
        b"K\0K\1\x85J\xff\xff\xff\xff\x85",
        b"K\0)K\1\x85",
    ],
)
def test_no_tensor_reaches_beyond_its_memory(arguments):
    assert load(crafted(TENSOR % b"K\0K\2\x85K\1\x85", _0=bytes(8))).tolist() == [0, 0]
    with pytest.raises(CheckpointError):
        load(crafted(TENSOR % arguments, _0=bytes(8)))


@pytest.mark.parametrize("content", [bytes(7), b""])
def test_memory_of_another_size_than_the_pickle_says_is_refused(content):
    with pytest.raises(CheckpointError, match=f"{len(content)} bytes for 2 elements of float32"):
        load(crafted(TENSOR % b"K\0K\2\x85K\1\x85", _0=content))


@pytest.mark.parametrize("name", ["objects", "older"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_files_that_were_cut_off_are_refused(name, part):
    content = (FILES / f"{name}.pt").read_bytes()
    with pytest.raises(CheckpointError):
        load(io.BytesIO(content[: int(len(content) * part)]))


def test_altered_bytes_give_errors_of_checkpoints_only():
    content = (FILES / "older.pt").read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(300):
        altered = bytearray(content)
        altered[generator.integers(len(altered))] = generator.integers(256)
        try:
            load(io.BytesIO(altered))
        except CheckpointError:
            continue
