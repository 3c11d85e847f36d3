"""Tree of a mesh call: every member once, few messages from each worker and each host, log n hops."""

import math
from collections import Counter

import pytest
from telegrad.rpc.meshes.tree import FAN_OUT, HOST_FAN_OUT, Member, children, depth, plant, split


def walk(subtrees):
    """Return the members, parents before their children, and the most children of one worker below the caller."""
    members, widest = [], 0
    for subtree in subtrees:
        below, wide = walk(children(subtree))
        members += [subtree[0], *below]
        widest = max(widest, wide, len(children(subtree)))
    return members, widest


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 20, 21, 84, 85, 200, 1000])
@pytest.mark.parametrize("apart", [False, True])
def test_every_worker_is_reached_once_in_the_order_of_the_mesh(count, apart):
    numbers = [7 * index for index in range(count)]
    subtrees = plant(
        numbers, [f"host{index * apart}" for index in range(count)], caller=-1, at="elsewhere" if apart else "host0"
    )
    members, widest = walk(subtrees)
    assert members == [Member(number, index, index * apart) for index, number in enumerate(numbers)]
    assert len(subtrees) <= FAN_OUT and widest <= (FAN_OUT if apart else HOST_FAN_OUT)
    assert depth(subtrees) <= math.ceil(math.log(max(count, FAN_OUT), FAN_OUT))


@pytest.mark.parametrize(
    ("count", "roots", "hops"), [(1, 1, 1), (4, 4, 1), (5, 1, 2), (32, 1, 2), (33, 2, 2), (200, 4, 2), (1000, 4, 3)]
)
def test_few_workers_of_a_host_pass_a_call_on(count, roots, hops):
    subtrees = plant(list(range(count)), ["one"] * count, caller=-1, at="one")
    members, widest = walk(subtrees)
    passing = [subtree for subtree in subtrees if len(subtree) > 1]
    passing += [part for subtree in passing for part in children(subtree) if len(part) > 1]
    assert len(subtrees) == roots and depth(subtrees) == hops and len(members) == count
    assert widest <= HOST_FAN_OUT and len(passing) <= -(-count // 25)


def test_the_caller_runs_its_part_and_forwards_for_no_other():
    subtrees = plant([5, 6, 7], ["one"] * 3, caller=6, at="one")
    assert subtrees == [(Member(6, 1, 0),), (Member(5, 0, 0),), (Member(7, 2, 0),)]


@pytest.mark.parametrize("at", ["a", "e", "elsewhere"])
def test_one_message_reaches_each_other_host(at):
    hosts = [host for _ in range(10) for host in "abcdefg"]
    subtrees = plant(list(range(70)), hosts, caller=-1, at=at)
    crossing = [(at, subtree[0]) for subtree in subtrees if hosts[subtree[0].place] != at]
    left = list(subtrees)
    while left:
        subtree = left.pop()
        below, host = children(subtree), hosts[subtree[0].place]
        crossing += [(host, part[0]) for part in below if hosts[part[0].place] != host]
        left += below
    assert sorted(hosts[root.place] for _, root in crossing) == sorted(set("abcdefg") - {at})
    assert max(Counter(sender for sender, _ in crossing).values()) <= FAN_OUT
    assert len(subtrees) <= FAN_OUT and depth(subtrees) <= 5


def test_parts_differ_by_one_member_at_most():
    for count in range(40):
        sizes = [len(part) for part in split(range(count))]
        assert sum(sizes) == count
        assert not sizes or max(sizes) - min(sizes) <= 1
