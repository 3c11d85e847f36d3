"""Tree of a mesh call: every member once, at most four messages from each worker, hosts together, log n hops."""

import math

import pytest
from telegrad.rpc.meshes.tree import FAN_OUT, Member, children, depth, plant, split


def walk(subtrees):
    """Return the members, parents before their children, and the most children of one worker."""
    members, widest = [], len(subtrees)
    for subtree in subtrees:
        below, wide = walk(children(subtree))
        members += [subtree[0], *below]
        widest = max(widest, wide)
    return members, widest


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 20, 21, 84, 85, 200, 1000])
def test_every_worker_is_reached_once_in_the_order_of_the_mesh(count):
    numbers = [7 * index for index in range(count)]
    subtrees = plant(numbers, ["one"] * count, caller=-1)
    members, widest = walk(subtrees)
    assert members == [Member(number, index) for index, number in enumerate(numbers)]
    assert widest <= FAN_OUT
    assert depth(subtrees) <= math.ceil(math.log(max(count, FAN_OUT), FAN_OUT))


def test_the_caller_runs_its_part_and_forwards_for_no_other():
    subtrees = plant([5, 6, 7], ["one"] * 3, caller=6)
    assert subtrees == [(Member(6, 1),), (Member(5, 0),), (Member(7, 2),)]


def test_workers_of_a_host_are_together():
    subtrees = plant(list(range(8)), ["a", "b"] * 4, caller=-1)
    assert [member.place for subtree in subtrees for member in subtree] == [0, 2, 4, 6, 1, 3, 5, 7]
    crossing = [subtree for subtree in subtrees if len({member.place % 2 for member in subtree}) > 1]
    assert not crossing


def test_parts_differ_by_one_member_at_most():
    for count in range(40):
        sizes = [len(part) for part in split([Member(index, index) for index in range(count)])]
        assert sum(sizes) == count
        assert not sizes or max(sizes) - min(sizes) <= 1
