"""Calls of the libraries that have PyTorch's programming model: Telegrad and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Api, Library


def worker_name(rank: int) -> str:
    """Return a worker's name."""
    return f"worker{rank}"


class TorchModel(Library):
    """Library whose modules have PyTorch's names; a subclass joins."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._names = [worker_name(rank) for rank in range(1024)]

    def leave(self) -> None:
        self._api.rpc.shutdown()

    def call(self, rank: int, function: Callable[..., Any], *args: Any) -> Any:
        return self._api.rpc.rpc_sync(self._names[rank], function, args=args)

    def start_call(self, rank: int, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        wait: Callable[[], Any] = self._api.rpc.rpc_async(self._names[rank], function, args=args).wait
        return wait

    def array(self, size: int) -> Any:
        return self._api.lib.ones(size, dtype=self._api.lib.uint8)

    def api(self) -> Api:
        return self._api
