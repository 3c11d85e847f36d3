"""Records PyTorch's type promotion, for tests/core/test_dtypes.py."""

import torch

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
SCALARS = {"bool": True, "int": 3, "float": 1.5, "complex": 1.5j}


def name(dtype):
    return str(dtype).removeprefix("torch.")


def with_dims(dtype):
    return torch.ones(2, dtype=getattr(torch, dtype))


def single(dtype):
    return torch.ones((), dtype=getattr(torch, dtype))


def table(combine):
    return {first: {second: combine(first, second) for second in NAMES} for first in NAMES}


def scalars(make):
    return {
        dtype: {kind: name(torch.result_type(make(dtype), value)) for kind, value in SCALARS.items()} for dtype in NAMES
    }


def tables():
    return {
        "promote_types": table(lambda a, b: name(torch.promote_types(getattr(torch, a), getattr(torch, b)))),
        "can_cast": table(lambda a, b: torch.can_cast(getattr(torch, a), getattr(torch, b))),
        "tensor_tensor": table(lambda a, b: name(torch.result_type(with_dims(a), with_dims(b)))),
        "tensor_single": table(lambda a, b: name(torch.result_type(with_dims(a), single(b)))),
        "single_single": table(lambda a, b: name(torch.result_type(single(a), single(b)))),
        "tensor_scalar": scalars(with_dims),
        "single_scalar": scalars(single),
        "add": table(lambda a, b: name((with_dims(a) + single(b)).dtype)),
        "mul": {a: {kind: name((with_dims(a) * value).dtype) for kind, value in SCALARS.items()} for a in NAMES},
        "div": table(lambda a, b: name((with_dims(a) / with_dims(b)).dtype)),
        "where": table(lambda a, b: name(torch.where(torch.tensor([True, False]), with_dims(a), with_dims(b)).dtype)),
        "cat": table(lambda a, b: name(torch.cat([with_dims(a), with_dims(b)]).dtype)),
        "sum": {a: name(with_dims(a).sum().dtype) for a in NAMES},
        "cumsum": {a: name(with_dims(a).cumsum(0).dtype) for a in NAMES},
        "exp": {a: name(with_dims(a).exp().dtype) for a in NAMES},
        "abs": {a: name(with_dims(a).abs().dtype) for a in NAMES if a != "bool"},
    }


def limits():
    floats = {a: torch.finfo(getattr(torch, a)) for a in NAMES if a[0] in "fbc" and a != "bool"}
    integers = {a: torch.iinfo(getattr(torch, a)) for a in NAMES if "int" in a}
    keys = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")
    return {
        "finfo": {a: {key: getattr(about, key) for key in keys} for a, about in floats.items()},
        "iinfo": {
            a: {key: getattr(about, key) for key in ("bits", "max", "min", "dtype")} for a, about in integers.items()
        },
    }


def recorded():
    single = tables()
    torch.set_default_dtype(torch.float64)
    double = {key: value for key, value in tables().items() if key in ("tensor_scalar", "single_scalar", "mul", "exp")}
    torch.set_default_dtype(torch.float32)
    return {"dtypes": {"tables": {"float32": single, "float64": double}, **limits()}}
