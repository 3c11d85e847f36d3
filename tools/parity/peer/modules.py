"""Cases of the database of modules: the same weights, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db

from .cases import gradients, spread
from .packing import packed, packed_all, pickled
from .recording import tensors

DTYPES = (torch.float64, torch.float32, torch.complex128)
SAMPLES = 8


def entries() -> dict[str, Any]:
    """The entries by name."""
    return {each.name: each for each in module_db}


def cases(name: str, entry: Any) -> Iterator[Any]:
    """The cases of one entry, or text that says why there is none."""
    for dtype in DTYPES:
        if dtype not in entry.supported_dtypes("cpu"):
            continue
        for training in (True, False):
            samples = entry.module_inputs_func(entry, device="cpu", dtype=dtype, requires_grad=True, training=training)
            note = f"{str(dtype).removeprefix('torch.')} {'training' if training else 'evaluation'}"
            for number, sample in enumerate(spread(iter(samples), SAMPLES)):
                try:
                    yield _case(name, f"{note} {number}", entry.module_cls, sample, dtype, training)
                except Exception as error:
                    yield f"{note} {number}: {type(error).__name__}: {str(error)[:120]}"


def _case(name: str, note: str, cls: Any, sample: Any, dtype: torch.dtype, training: bool) -> dict[str, Any]:
    constructor, forward = sample.constructor_input, sample.forward_input
    message: dict[str, Any] = {"entry": name, "note": note, "kind": "module", "training": training}
    message["constructor"] = pickled((f"torch.{name}", constructor.args, constructor.kwargs))
    torch.manual_seed(1)
    module = cls(*constructor.args, **constructor.kwargs).to(dtype).train(training)
    # Some give one tensor twice.
    inputs = list({id(leaf): leaf for leaf in tensors((forward.args, forward.kwargs))}.values())
    places = {id(leaf): ("leaf", number) for number, leaf in enumerate(inputs)}
    message["leaves"] = packed_all(inputs)
    message["forward"] = pickled((forward.args, forward.kwargs), places)
    if "Lazy" in name:
        module(*forward.args, **forward.kwargs)
    message["state"] = {key: packed(value) for key, value in module.state_dict().items()}
    torch.manual_seed(3)
    first = packed_all(module(*forward.args, **forward.kwargs))
    module.load_state_dict({key: _unpacked(value) for key, value in message["state"].items()})
    torch.manual_seed(1)
    result = module(*forward.args, **forward.kwargs)
    message["values"] = packed_all(result)
    message["shapes_only"] = any(
        isinstance(one, tuple) and one[2].tobytes() != two[2].tobytes() for one, two in zip(message["values"], first)
    )
    message["state_after"] = {key: packed(value) for key, value in module.state_dict().items()}
    if not message["shapes_only"]:
        message |= gradients(tensors(result), [*inputs, *module.parameters()], 1)
    return message


def _unpacked(data: Any) -> torch.Tensor:
    return torch.from_numpy(data[2].copy())
