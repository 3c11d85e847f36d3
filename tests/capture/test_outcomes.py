"""Attributes of tensors and lists that were there before, which calls leave beside elements: a replay would make others."""

import pytest
import telegrad as tg

X = tg.ones(3)


def same_outcomes(make, look, calls=5):
    """Return the reason why calls run eagerly; ``look`` of their results must be what it is without compilation.

    Args:
        make: makes the function.
        look: returns from a result and its argument what to compare.
        calls: the number of calls.
    """
    logs, reasons = [], ""
    for compiled in (False, True):
        function = tg.compile(make()) if compiled else make()
        log = []
        for number in range(calls):
            x = X.clone()
            if number == calls - 1:
                x.last = True
            log.append(look(function(x), x))
        logs.append(log)
        reasons = function.explain() if compiled else ""
    assert logs[0] == logs[1]
    return reasons


def returns_what_there_was():
    history = [1.0]
    return lambda x: (x * 2, history, history)


def returns_under_two_names(x):
    parts = [x * 2]
    return parts, {"same": parts}


class Parts(list):
    pass


def returns_with_attributes(x):
    parts = Parts([x * 2])
    parts.count = 1
    return parts


RETURNED = [
    (returns_what_there_was, lambda result, x: result[1] is result[2] and len(result[1])),
    (lambda: returns_under_two_names, lambda result, x: result[0] is result[1]["same"]),
    (lambda: returns_with_attributes, lambda result, x: result.count),
]


@pytest.mark.filterwarnings("ignore:.* runs eagerly")
@pytest.mark.parametrize("make, look", RETURNED)
def test_a_list_is_returned_as_the_object_that_it_is(make, look):
    assert "return a copy" in same_outcomes(make, look)


@pytest.mark.filterwarnings("ignore:.* runs eagerly")
def test_an_argument_is_returned_as_the_object_that_it_is():
    run = tg.compile(lambda x, table: (x * 2, table))
    for _ in range(5):
        table = {"scale": 2}
        assert run(X, table)[1] is table


def test_new_lists_are_returned_by_replays():
    run = tg.compile(lambda x: ([x * 2], {"x": [x]}))
    results = [run(X) for _ in range(5)]
    assert run.plans()[0].replays == 3 and results[3][0] is not results[4][0]


def marks_result(x):
    y = x * 2
    y.mark = "here"
    return y


def marks_argument(x):
    x.mark = "here"
    return x * 2


def drops_mark(x):
    if hasattr(x, "last"):
        del x.last
    return x * 2


def reads_mark(x):
    return x * getattr(x, "last", 3)


def tries_mark(x):
    try:
        return x * x.last
    except AttributeError:
        return x * 3


@pytest.mark.filterwarnings("ignore:.* runs eagerly")
@pytest.mark.parametrize("function", [marks_result, marks_argument])
def test_attributes_that_a_call_sets_are_there(function):
    assert "mark" in same_outcomes(lambda: function, lambda result, x: [vars(result), vars(x)])


@pytest.mark.parametrize("function", [drops_mark, reads_mark, tries_mark])
def test_attributes_of_arguments_are_noticed(function):
    """Only the last call has one; those before are replayed."""
    same_outcomes(lambda: function, lambda result, x: [result.tolist(), vars(x)])


def test_arguments_without_attributes_are_replayed_where_attributes_are_read():
    run = tg.compile(reads_mark)
    for _ in range(5):
        run(X.clone())
    assert run.plans()[0].replays == 3


@pytest.mark.filterwarnings("ignore:.* runs eagerly")
def test_an_attribute_of_an_argument_is_read_anew_in_each_call():
    run, results = tg.compile(lambda x: x * x.scale), []
    for scale in range(5):
        x = X.clone()
        x.scale = scale
        results.append(run(x)[0].item())
    assert results == [0, 1, 2, 3, 4] and "an attribute of an argument" in run.explain()
