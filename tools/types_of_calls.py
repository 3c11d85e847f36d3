"""Types that a checker finds for results of calls: mypy checks these lines, which never run (``make check``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from typing_extensions import assert_type

    from ..core import Tensor
    from ..core.futures import Future, wait_all
    from ..nn import LSTM, Linear, Module, Sequential
    from ..rpc import functions, rpc_async, rpc_sync, stream
    from ..rpc import map as map_calls
    from ..rref import RRef, remote

    class Counter:
        """Class whose instances live on other workers."""

    def text(number: int) -> str:
        """Return text."""
        return str(number)

    async def later(number: int) -> str:
        """Return text, some time later."""
        return str(number)

    @functions.async_execution
    def forwarded(number: int) -> Future[str]:
        """Return the future of another worker's answer."""
        return rpc_async("w", text, (number,))

    def numbers(most: int) -> Iterator[int]:
        """Yield numbers."""
        yield from range(most)

    async def numbers_later(most: int) -> AsyncIterator[int]:
        """Yield numbers, one after the other."""
        yield most

    class Model(Module):
        """Module of a user, with annotations."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = Linear(2, 2)

        def forward(self, x: Tensor, twice: bool = False) -> tuple[Tensor, bool]:
            """Return a tensor and the argument."""
            return self.layer(x), twice

    class Bare(Module):
        """Module of a user, without annotations."""

        def forward(self, x):  # type: ignore[no-untyped-def]
            """Return anything."""
            return x

    def untyped() -> Any:
        """Return anything."""

    assert_type(rpc_sync("w", text, (1,)), str)
    assert_type(rpc_sync("w", later, (1,)), str)
    assert_type(rpc_sync("w", forwarded, (1,)), str)
    assert_type(rpc_sync("w", lambda: 3), int)
    assert_type(rpc_sync("w", untyped), Any)
    assert_type(rpc_async("w", text, (1,)), Future[str])
    assert_type(rpc_async("w", later, (1,)), Future[str])
    assert_type(rpc_async("w", forwarded, (1,)).wait(), str)
    assert_type(remote("w", Counter), RRef[Counter])
    assert_type(remote("w", Counter).to_here(), Counter)
    assert_type(remote("w", later, (1,)), RRef[str])
    assert_type(next(stream("w", numbers, (1,))), int)
    assert_type(next(stream("w", numbers_later, (1,))), int)
    assert_type(list(map_calls(["w"], text, [1, 2])), list[str])
    assert_type(list(map_calls(["w"], later, [1, 2])), list[str])
    assert_type(wait_all([rpc_async("w", text, (1,)), rpc_async("w", later, (1,))]), list[str])

    def modules(x: Tensor, any_module: Module) -> None:
        """Call modules."""
        assert_type(Linear(2, 2)(x), Tensor)
        assert_type(LSTM(2, 2)(x)[1], tuple[Tensor, Tensor])
        assert_type(Model()(x, twice=True), tuple[Tensor, bool])
        assert_type(Bare()(x), Any)
        assert_type(Sequential(Linear(2, 2))(x), Any)
        assert_type(any_module(x), Any)

    async def awaited() -> None:
        """Await calls."""
        assert_type(await rpc_async("w", later, (1,)), str)
        async for number in stream("w", numbers_later, (1,)):
            assert_type(number, int)
