"""Numbers of the methods and topics of references. Those from 16 to 31 are this package's."""


class Method:
    """What a request asks for."""

    CREATE = 16
    FETCH = 17


class Topic:
    """What a control message is about."""

    OWNERSHIP = 16
