"""Samples of a worker's stacks: which threads and functions they have, their bounds, and who is refused."""

import json
import threading

import pytest
from helpers.threads import until
from telegrad.rpc.debugging.debugger import Debugger
from telegrad.rpc.observing import SampledStacks, read_record
from telegrad.rpc.observing.sampling import _Sampler, sample_stacks
from telegrad.testing import in_process_cluster


class Program:
    """A thread of the program, which is in one function and then in another."""

    def __init__(self):
        self.first, self.second = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, name="program")

    def run(self):
        self.wait_first()
        self.wait_second()

    def wait_first(self):
        self.first.wait(20)

    def wait_second(self):
        self.second.wait(20)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.first.set(), self.second.set()
        self.thread.join(20)


def names(sampler, run):
    codes = list(sampler.codes)
    return [codes[place].co_name for place in list(sampler.stacks)[run[1]]]


def test_looks_in_a_row_at_one_stack_are_one_run():
    sampler = _Sampler()
    with Program() as program:
        until(lambda: names_of(program.thread)[-1:] == ["wait"])
        for _ in range(3):
            sampler.look(0.0)
        program.first.set()
        until(lambda: "wait_second" in names_of(program.thread) and names_of(program.thread)[-1] == "wait")
        sampler.look(0.1)
    place = sampler.threads.index("program")
    first, second = [each for each in sampler.runs if each[0] == place]
    assert (first[2:], second[2:]) == ([0, 3], [3, 1])
    assert names(sampler, first)[:2] == ["run", "wait_first"] and names(sampler, second)[:2] == ["run", "wait_second"]
    assert names(sampler, first)[-1] == "wait"


def names_of(thread):
    sampler = _Sampler()
    sampler.look(0.0)
    if thread.name not in sampler.threads:
        return []
    place = sampler.threads.index(thread.name)
    return names(sampler, next(each for each in sampler.runs if each[0] == place))


def test_sampling_takes_its_time_and_ends_early_when_it_is_told():
    found = sample_stacks("w", 0.1, 50.0, threading.Event())
    assert 1 <= len(found.times) <= 6 and found.times == sorted(found.times) and 0.1 <= found.seconds < 20
    stop = threading.Event()
    stop.set()
    assert len(sample_stacks("w", 30.0, 1.0, stop).times) == 1


def ask(agent, worker, **request):
    answer = agent.part(Debugger).ask(agent.peers.find(worker), {"ask": "sample", **request}, 20.0)
    return json.loads(answer.wait(20.0))


def test_a_worker_samples_itself_for_another():
    with in_process_cluster("a", "b") as (a, _), Program():
        found = read_record(SampledStacks, ask(a, "b", seconds=0.05, hertz=100))
        assert found.worker == "b" and "program" in found.threads
        assert {each.function.rpartition(".")[2] for each in found.frames} >= {"run", "wait_first"}
        assert "telegrad-sampler" not in found.threads


@pytest.mark.parametrize(
    "request_",
    [{"seconds": 31, "hertz": 10}, {"seconds": 1, "hertz": 1e9}, {"seconds": "nan", "hertz": 1}, {"hertz": 1}],
)
def test_too_much_is_refused(request_):
    with in_process_cluster("a", "b") as (a, _):
        assert "error" in ask(a, "b", **request_)


def test_one_request_is_answered_at_a_time_and_a_closed_worker_samples_no_more():
    with in_process_cluster("a", "b") as (a, b):
        long = a.part(Debugger).ask(a.peers.find("b"), {"ask": "sample", "seconds": 30, "hertz": 10}, 60.0)
        until(lambda: any(each.name == "telegrad-sampler" for each in threading.enumerate()))
        assert "is being sampled already" in ask(a, "b", seconds=0.01, hertz=10)["error"]
        b.close()
        until(lambda: long.done())
