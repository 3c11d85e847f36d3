"""``functional_call``: a call of a module with other parameters than its own (``torch.func.functional_call``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.extend import Tensor
from ..module import Module

States = Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: States,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Return the module's result with these tensors in place of its parameters and buffers, which stay as they are.

    Args:
        module: the module; while it is called, no other thread may use it.
        parameter_and_buffer_dicts: tensors by their paths, or several such mappings without a path in common.
        args: positional arguments: a tuple, or the only one.
        kwargs: keyword arguments.
        tie_weights: whether a parameter that is in several owners is replaced in all of them.
        strict: whether all parameters and buffers must be given.

    Raises:
        KeyError: there is no such path; or, if ``strict``, one is missing.
        ValueError: a path is given twice, or two tensors for one parameter.
    """
    given = parameter_and_buffer_dicts
    values = dict(given) if isinstance(given, Mapping) else _united(given)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, values, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _united(mappings: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    united: dict[str, Tensor] = {}
    for mapping in mappings:
        if twice := united.keys() & mapping.keys():
            raise ValueError(f"functional_call() was given {sorted(twice)[0]!r} twice")
        united.update(mapping)
    return united


@contextmanager
def _replaced(module: Module, values: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    owners = {
        f"{path}.{name}" if path else name: (table, name)
        for path, owner in module.named_modules(remove_duplicate=False)
        for table in (owner._parameters, owner._buffers)
        for name in table
    }
    missing = [path for path, (table, name) in owners.items() if table[name] is not None and path not in values]
    unknown = [path for path in values if path not in owners]
    if unknown or (strict and missing):
        what = f"no parameter or buffer {unknown[0]!r}" if unknown else f"a {missing[0]!r}, which you did not give"
        raise KeyError(f"functional_call(): {type(module).__name__} has {what}")
    former = {path: table[name] for path, (table, name) in owners.items()}
    if tie_weights:
        values = _tied(values, former)
    try:
        for path, value in values.items():
            table, name = owners[path]
            table[name] = value  # type: ignore[assignment]
        yield
    finally:
        for path, old in former.items():
            table, name = owners[path]
            # What a buffer became in the call is the caller's tensor; the module keeps its own.
            if path in values:
                table[name] = old  # type: ignore[assignment]


def _tied(values: dict[str, Tensor], former: Mapping[str, Tensor | None]) -> dict[str, Tensor]:
    by_tensor: dict[int, Tensor] = {}
    for path, value in values.items():
        if by_tensor.setdefault(id(former[path]), value) is not value:
            raise ValueError(f"functional_call() was given two tensors for {path!r}, which is tied to another")
    return {path: by_tensor[id(old)] for path, old in former.items() if old is not None and id(old) in by_tensor}
