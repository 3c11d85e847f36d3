"""The callee's side of an item stream, as a state machine: every order of events."""

import itertools
import random

import pytest
from telegrad.base.errors import IllegalEventError
from telegrad.rpc.functions.item_source import (
    Close,
    CloseGenerator,
    Finished,
    GeneratorPhase,
    Interrupt,
    ItemSource,
    NoMoreItems,
    Pulled,
    Step,
    Stepped,
)
from telegrad.testing.schedules import replayable, seeds


def test_pulls_in_every_order_are_answered_in_the_order_of_their_numbers():
    for order in itertools.permutations(range(4)):
        source, steps = ItemSource(), []
        for number in order:
            instructions = source.handle(Pulled(number, number))
            while instructions:
                (step,) = instructions
                steps.append(step.pull)
                instructions = source.handle(Stepped())
        assert steps == [0, 1, 2, 3] and source.phase is GeneratorPhase.IDLE


def test_one_step_at_a_time():
    source = ItemSource()
    assert source.handle(Pulled(0, "a")) == [Step("a")]
    assert source.handle(Pulled(1, "b")) == []
    assert source.handle(Stepped()) == [Step("b")]


def test_a_repeated_pull_changes_nothing():
    source = ItemSource()
    source.handle(Pulled(0, "a"))
    assert source.handle(Pulled(0, "again")) == []
    assert source.handle(Stepped()) == [] and source.phase is GeneratorPhase.IDLE


def test_closing_between_items_closes_the_generator_and_ends_what_waits():
    source = ItemSource()
    source.handle(Pulled(2, "c"))
    assert source.handle(Close()) == [CloseGenerator(), NoMoreItems("c")]
    assert source.handle(Close()) == []
    assert source.handle(Pulled(0, "a")) == [NoMoreItems("a")]
    assert source.handle(Finished()) == [] and source.phase is GeneratorPhase.ENDED


def test_closing_during_a_step_interrupts_it_and_closes_afterwards():
    source = ItemSource()
    source.handle(Pulled(0, "a"))
    source.handle(Pulled(1, "b"))
    assert source.handle(Close()) == [Interrupt(), NoMoreItems("b")]
    assert source.handle(Stepped()) == [CloseGenerator()]
    assert source.handle(Finished()) == []


def test_what_cannot_happen_is_refused():
    for events in ([Stepped()], [Finished()], [Pulled(0, "a"), Stepped(), Stepped()]):
        source = ItemSource()
        with pytest.raises(IllegalEventError):
            for event in events:
                source.handle(event)


def test_in_every_schedule_each_pull_is_answered_once_and_the_generator_is_closed_once():
    for seed in seeds(2000):
        with replayable(seed):
            run_schedule(random.Random(seed))


def run_schedule(rng):
    """Pulls of a window, an end or an error at some item, and a close, all at any time."""
    source, answered, closes, running = ItemSource(), [], 0, None
    length, pulls = rng.randint(0, 6), rng.sample(range(9), 9)
    closing = rng.random() < 0.5
    made, finishing = 0, False
    while pulls or running is not None or finishing:
        events = [Pulled(pulls[-1], pulls[-1])] if pulls else []
        if running is not None:
            events.append(Stepped() if made < length else Finished())
        if finishing:
            events.append(Finished())
        if closing:
            events.append(Close())
        event = rng.choice(events)
        if isinstance(event, Pulled):
            pulls.pop()
        elif isinstance(event, Close):
            closing = False
        elif isinstance(event, Stepped) or running is not None:
            answered.append(running)
            made, running = made + 1, None
        else:
            finishing = False
        for instruction in source.handle(event):
            if isinstance(instruction, Step):
                assert running is None and not finishing and closes == 0
                running = instruction.pull
                assert running == made
            elif isinstance(instruction, NoMoreItems):
                answered.append(instruction.pull)
            elif isinstance(instruction, CloseGenerator):
                closes, finishing = closes + 1, True
                assert running is None
    if closing and source.phase is not GeneratorPhase.ENDED:
        source.handle(Close())
        source.handle(Finished())
    assert sorted(answered) == list(range(9)) and closes <= 1
    assert source.phase is GeneratorPhase.ENDED
