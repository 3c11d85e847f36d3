"""Numbers of the methods and topics of references. Those from 16 to 31 are this package's."""


class Method:
    """Method numbers: what a request asks for."""

    CREATE = 16
    FETCH = 17
    METHOD = 18


class Topic:
    """Topics of control messages."""

    OWNERSHIP = 16
