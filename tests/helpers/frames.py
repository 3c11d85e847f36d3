"""Session of a test, which notes what it is given to send."""

from telegrad.rpc.lanes.session import Session

__name__ = "telegrad.rpc.lanes.frames"  # for the shield: this is as protected as a lane


class Frames(Session):
    """Session that keeps the messages whose frames it was given, and calls ``before(message)`` first: ``None`` asks."""

    def __init__(self, before=lambda message: True):
        super().__init__()
        self.sent, self.frames, self.before = [], [], before

    def send(self, parts, handle=None):
        self.frames.append(b"".join(parts))
        went = self.before(handle)
        if went and handle is not None:
            handle.taken(None)
            self.sent.append(handle)
        return went

    def close(self, last=None):
        raise AssertionError("nobody closes it")
