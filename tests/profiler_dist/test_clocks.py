"""Clocks of other workers: one clock stays as it is, others are moved, and what happened in a call stays inside it."""

from telegrad.core.profiler import profile, record_function
from telegrad.profiler_dist.clocks import Clocks
from telegrad.profiler_dist.encoding import FLAGS, decode_events, decode_options, encode_events, encode_options

AHEAD = 10**12


def test_one_clock_is_left_alone():
    assert Clocks().offset(1, sent=100, began=150, ended=250, arrived=300) == 0


def test_another_clock_is_moved_to_the_middle():
    assert Clocks().offset(1, 100, 150 + AHEAD, 250 + AHEAD, 300) == -AHEAD
    assert Clocks().offset(1, 100, 150 - AHEAD, 250 - AHEAD, 300) == AHEAD


def test_the_quickest_call_decides():
    clocks = Clocks()
    quick = clocks.offset(1, 100, 110 + AHEAD, 190 + AHEAD, 200)
    slow = clocks.offset(1, 1000, 1900 + AHEAD, 1950 + AHEAD, 2000)  # it waited at the callee: 900 there, 50 back
    assert quick == slow == -AHEAD
    assert clocks.offset(2, 1000, 1900 + AHEAD, 1950 + AHEAD, 2000) == -AHEAD - 425


def test_a_call_holds_its_events_when_clocks_drift():
    clocks = Clocks()
    clocks.offset(1, 100, 110 + AHEAD, 190 + AHEAD, 200)
    drift = 5000
    offset = clocks.offset(1, 10_000, 10_100 + AHEAD + drift, 10_200 + AHEAD + drift, 10_300)
    began, ended = (10_100 + AHEAD + drift + offset, 10_200 + AHEAD + drift + offset)
    assert began >= 10_000 and ended <= 10_300


def test_options_and_events_survive_the_way():
    for name in FLAGS:
        assert decode_options(encode_options([profile(), profile(**{name: True})]))[name]
    recorded = profile(record_shapes=True)
    with recorded, record_function("outer"):
        with record_function("inner"):
            recorded.begin_call("call", blocking=True).memory = 7
        recorded.begin("node", ((2, 3), ((1,), ())), backward=True)
    outer, inner, call, node = decode_events(encode_events(recorded, recorded.began + 5000)).events
    assert [outer.name, inner.name, call.name, node.name] == ["outer", "inner", "call", "node"]
    assert inner.cpu_parent is outer and call.cpu_parent is inner and node.cpu_parent is outer
    assert outer.cpu_children == [inner, node]
    assert (call.is_async, call.blocking, call.memory, call.end) == (True, True, 7, None)
    assert node.backward and node.input_shapes == ((2, 3), ((1,), ()))
    assert decode_events(encode_events(recorded, recorded.began + 5000)).ended == recorded.began + 5000
