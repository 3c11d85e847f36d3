"""Numbers of the methods and topics of references. This package uses 16 to 31."""


class ReferenceMethod:
    """Method numbers of requests."""

    CREATE = 16
    FETCH = 17
    METHOD = 18
    RESULT = 19


class ReferenceTopic:
    """Topics of control messages."""

    OWNERSHIP = 16
