"""Numbers of the methods and topics of distributed autograd. This package uses 32 to 47."""

GRADIENT_EXTRA = 2
"""Number of the extra of a message that has its context."""


class GradientMethod:
    """Method numbers of requests."""

    PROPAGATE = 32
    STEP = 33
    FORWARD = 34
    BACKWARD = 35
    FAILURE = 36
    DEFINE = 37
    PLAIN = 38
    DESCRIBE = 39
    WITHDRAW = 40


class GradientTopic:
    """Topics of control messages."""

    CONTEXT = 32
    PASS_STOPPED = 33
    FORGET = 34
