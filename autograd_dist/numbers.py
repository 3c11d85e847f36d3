"""Numbers of the methods and topics of distributed autograd. Those from 32 to 47 are this package's."""


class Method:
    """Method numbers: what a request asks for."""

    PROPAGATE = 32


class Topic:
    """Topics of control messages."""

    CONTEXT = 32
    PASS_STOPPED = 33
