"""Numbers of the methods of process groups. Those from 48 to 63 are this package's."""


class GroupMethod:
    """Method numbers: what a request asks for."""

    PASS = 48
    FAIL = 49
    ASK = 50
    REPORT = 51
    STATE = 52
