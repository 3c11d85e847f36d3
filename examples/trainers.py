"""Parts of the examples in which trainers learn with models that other workers own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import telegrad as tg

T = TypeVar("T")


class Owner:
    """Base class of objects that own a module on some worker, for optimizers on others."""

    module: tg.nn.Module

    def parameter_rrefs(self) -> list[tg.RRef]:
        """Return references to the parameters of the module."""
        return [tg.RRef(parameter) for parameter in self.module.parameters()]


def train_all(names: Sequence[str], train: Callable[..., T], *args: Any) -> list[T]:
    """Let all trainers train at the same time, and return what each returns.

    Args:
        names: of the trainers.
        train: called on each with its number, the number of all, and ``args``.
        args: further arguments.
    """
    # No time-out: a training may take any time. A trainer that is lost ends its call at once.
    calls = [tg.rpc.rpc_async(name, train, (index, len(names), *args), timeout=0) for index, name in enumerate(names)]
    return tg.futures.wait_all(calls)
