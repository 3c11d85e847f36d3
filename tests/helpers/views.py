"""Views seen from outside."""

import telegrad as tg


def is_view_of(tensor, base):
    """Return whether a change of ``base`` counts as a change of ``tensor``; the values stay."""
    before = tensor._version
    with tg.no_grad():
        base.add_(0)
    return tensor._version > before
