"""Numbers of the methods and topics of distributed autograd. Those from 32 to 47 are this package's."""


class Method:
    """What a request asks for."""

    PROPAGATE = 32


class Topic:
    """What a control message is about."""

    CONTEXT = 32
