"""Lines of the program that made references: recorded where that is asked for, and told in observations."""

import numpy as np
import pytest
from helpers.threads import until
from telegrad import rpc
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rref import places
from telegrad.rref.context import PLACES_VARIABLE, places_wanted
from telegrad.rref.places import CreationPlaces
from telegrad.testing import in_process_cluster

WITH_PLACES = GrpcRpcBackendOptions(rref_places=True)


def make_here():
    return rpc.RRef([1])  # made: here


def make_there():
    return rpc.remote("b", np.ones, args=(3,))  # made: there


def line_of(function):
    return function.__code__.co_firstlineno + 1


def told(reference):
    """Return what the observations of all workers say of where a reference was made."""
    seen = [each for worker in rpc.observe(parts=["owned", "held"]) for each in (*worker.owned, *worker.held)]
    return [each.where for each in seen if each.rref_id == str(reference._fork.rref_id) and each.where]


@pytest.mark.parametrize("make", [make_here, make_there])
def test_the_line_that_made_a_reference_is_told(make):
    with in_process_cluster("a", "b", options=WITH_PLACES) as (a, _), a.use():
        reference = make()
        (where,) = told(reference)
        assert (where.file, where.line, where.function) == (__file__, line_of(make), make.__name__)


def test_a_method_that_makes_a_reference_is_told_with_its_line():
    with in_process_cluster("a", "b", options=WITH_PLACES) as (a, _), a.use():
        first = make_there()
        second = first.remote().sum()
        assert second.to_here() == 3.0
        (where,) = told(second)
        assert where.function == "test_a_method_that_makes_a_reference_is_told_with_its_line"


def test_nothing_is_recorded_otherwise(monkeypatch):
    monkeypatch.setattr(CreationPlaces, "note", None)
    with in_process_cluster("a", "b") as (a, _), a.use():
        assert told(make_here()) == told(make_there()) == []


def test_the_option_goes_before_the_environment(monkeypatch):
    assert [places_wanted(option) for option in (None, True, False)] == [False, True, False]
    monkeypatch.setenv(PLACES_VARIABLE, "1")
    assert [places_wanted(option) for option in (None, True, False)] == [True, True, False]


def test_places_of_references_that_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(places, "FIRST_SWEEP", 10)
    alive = set(range(3))
    noted = CreationPlaces(lambda: alive)
    for number in range(100):
        noted.note(number)
        assert len(noted._places) < 13
    assert all(noted.get(each) for each in alive) and noted.get(50) is None


def test_a_dropped_reference_is_no_leak_by_its_place():
    with in_process_cluster("a", "b", options=WITH_PLACES) as (a, _), a.use():
        make_there().to_here()
        until(lambda: rpc.observe("b", parts=["owned"])[0].totals["owned"] == 0)
