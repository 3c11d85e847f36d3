"""Proxies: methods of a value called through its reference, and its type, which they ask for."""

import asyncio
import copy
import pickle
import threading

import pytest
import telegrad as tg
from helpers.remote import Counter, Shelf, same, wait_and_make
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError

pytestmark = pytest.mark.usefixtures("tables_end_empty")


@pytest.mark.parametrize("owner", ["a", "b"])
def test_proxies(workers, owner):
    counter = rpc.remote(owner, Counter)
    assert counter.rpc_sync().add() == 1
    assert counter.rpc_async().add(number=2).wait() == 3
    assert counter.remote().add(3).to_here() == 6
    assert counter.rpc_sync(timeout=5).get() == 6
    assert counter.rpc_sync().add_slowly(1) == 7
    with pytest.raises(KeyError, match="no"):
        counter.rpc_sync().fail()
    with pytest.raises(AttributeError, match="nonsense"):
        counter.rpc_sync().nonsense()
    with pytest.raises(KeyError):
        counter.rpc_async().fail().wait()
    with pytest.raises(KeyError):
        counter.remote().fail().to_here()


def test_an_attribute_that_only_the_value_has(workers):
    counter = rpc.remote("b", Counter)
    with pytest.raises(AttributeError, match=r"an RRef has no attribute 'add'; .* rref\.rpc_sync\(\)\.add\(\.\.\.\)"):
        counter.add(1)
    assert not hasattr(counter, "add")


def test_a_proxy_to_a_value_that_is_not_there_yet(workers):
    Shelf.kept["gate"] = gate = threading.Event()
    slow = rpc.remote("b", wait_and_make, ("gate",))
    future = slow.rpc_async().add(1)
    gate.set()
    assert future.wait() == 1
    assert slow.rpc_sync().get() == 1


def test_a_method_that_returns_its_object_returns_a_copy(workers):
    counter = rpc.remote("b", Counter, (4,))
    copied = counter.rpc_sync().me()
    copied.add()
    assert counter.rpc_sync().get() == 4
    assert counter.remote().me().rpc_sync().add() == 5  # the very object, by another reference
    assert counter.rpc_sync().get() == 5


def test_special_methods(workers):
    words = rpc.remote("b", list, ("abc",))
    assert words.rpc_sync().__len__() == 3
    assert words.rpc_sync().__getitem__(1) == "b"
    words.rpc_sync().__setitem__(1, "x")
    assert words.rpc_sync().__contains__("x")
    with pytest.raises(TypeError):
        pickle.dumps(words.rpc_sync())
    with pytest.raises(TypeError):
        copy.copy(words.rpc_sync())


def test_the_type_is_asked_for_once(workers, monkeypatch):
    reference = rpc.remote("b", make_counter)
    received = rpc.rpc_sync("c", same, (reference,))
    assert reference._get_type(blocking=False).wait() is Counter
    sent = workers[0].caller.table.sent
    assert reference._get_type() is Counter is reference._get_type(timeout=5, blocking=False).wait()
    assert workers[0].caller.table.sent == sent
    assert received._get_type() is Counter  # another reference asks for itself
    assert tg.RRef(3)._get_type() is int


def test_a_type_that_could_not_be_had_is_asked_for_again(workers):
    Shelf.kept["gate"] = gate = threading.Event()
    slow = rpc.remote("b", wait_and_make, ("gate",))
    with pytest.raises(RpcTimeoutError):
        slow._get_type(timeout=0.05)
    gate.set()
    assert slow._get_type() is Counter


def make_counter():
    return Counter()


@pytest.mark.parametrize("maker", [Counter, make_counter])
@pytest.mark.parametrize("owner", ["a", "b"])
def test_a_proxy_names_a_missing_method(workers, owner, maker):
    reference = rpc.remote(owner, maker)
    with pytest.raises(AttributeError, match="nonsense"):
        reference.remote().nonsense().to_here()
    with pytest.raises(AttributeError, match="nonsense"):
        reference.rpc_sync().nonsense()
    with pytest.raises(AttributeError, match="nonsense"):
        reference.rpc_async().nonsense().wait()


def test_a_proxy_finds_what_only_the_instance_has(workers):
    reference = rpc.remote("b", with_own_method)
    assert reference.remote().twice(4).to_here() == 8


def with_own_method():
    counter = Counter()
    counter.twice = lambda number: 2 * number
    return counter


@pytest.mark.parametrize("maker", [Counter, make_counter])
def test_a_proxy_asks_nothing_before_it_calls(workers, maker):
    reference = rpc.remote("b", maker)
    sent = workers[0].caller.table.sent
    made = reference.remote().add(2)
    assert workers[0].caller.table.sent == sent + 1
    assert made.to_here() == 2


@pytest.mark.parametrize("owner", ["a", "b"])
def test_a_chain_is_sent_before_its_first_value_is_made(workers, owner, until):
    Shelf.kept["gate"] = gate = threading.Event()
    agent = workers["ab".index(owner)]
    counter = rpc.remote(owner, wait_and_make, ("gate",))
    chain = counter.remote().me().remote().add(2).remote().bit_length()
    calls = [counter.rpc_async().add(0) for _ in range(20)]
    until(lambda: len(agent.server.waiting) == 23)
    until(lambda: agent.threads.functions.counts()["running"] <= 1)  # the maker's: nothing that waits has a thread
    gate.set()
    assert chain.to_here() == 2
    assert {call.wait() for call in calls} <= {0, 2}  # some may run before the 2 is added


def test_an_error_ends_a_chain_by_name(workers):
    counter = rpc.remote("b", Counter)
    error = (
        counter.remote()
        .fail()
        .remote()
        .add(1)
        .remote()
        .add(2)
        .to_here_async()
        .then(lambda done: done.exception())
        .wait()
    )
    assert isinstance(error, KeyError) and "on worker 'b'" in str(error.__cause__)


# -- streams of a value


class Pages:
    def read(self, count, start=0):
        yield from range(start, start + count)

    async def read_later(self, count):
        for number in range(count):
            await asyncio.sleep(0)
            yield number

    def not_a_generator(self):
        return 3


@pytest.mark.parametrize("owner", ["a", "b"])
def test_a_method_that_yields_is_streamed(workers, owner):
    with rpc.remote(owner, Pages) as pages:
        assert list(pages.stream().read(3, start=1)) == [1, 2, 3]
        assert list(pages.stream(ahead=0).read_later(2)) == [0, 1]
        with pages.stream(timeout=20).read(1000) as numbers:
            assert [next(numbers), next(numbers)] == [0, 1]
        with pytest.raises(TypeError, match="returned int"):
            next(pages.stream().not_a_generator())
        with pytest.raises(AttributeError, match="write"):
            next(pages.stream().write())
        with pytest.raises(ValueError, match="ahead must be"):
            pages.stream(ahead=-1).read(1)
