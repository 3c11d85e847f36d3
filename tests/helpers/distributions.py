"""Recorded cases of distributions, and the distributions that they are about."""

import telegrad as tg
from telegrad import distributions as d

from .golden import recorded

GOLDEN = recorded("distributions")
CASES = GOLDEN["cases"]


def make(name, parameters, **options):
    """Return the distribution of a class, with parameters that are numbers or lists."""
    tensors = {key: v if isinstance(v, int) else tg.tensor(v) for key, v in parameters.items()}
    return getattr(d, name)(**tensors, **options)


def label(case):
    """Return the name of a case's test."""
    return f"{case['name']}-{'-'.join(case['parameters'])}"
