"""Client of the Debug Adapter Protocol: what an IDE says and hears."""

import json
import select
import time

from telegrad.rpc.debugging.dap_messages import dap_message


class Ide:
    """IDE that talks to a debug adapter.

    Args:
        write: sends bytes.
        descriptor: of the file from which its bytes come.
        read: reads some.
    """

    def __init__(self, write, descriptor, read):
        self.write, self.descriptor, self.read = write, descriptor, read
        self.data, self.number = b"", 0
        self.events, self.responses = [], {}

    def send(self, command, **arguments):
        """Send a request, and return its number."""
        self.number += 1
        self.write(dap_message({"seq": self.number, "type": "request", "command": command, "arguments": arguments}))
        return self.number

    def ask(self, command, **arguments):
        """Send a request, and return the body of its response; events that come before are kept."""
        return self.answer(self.send(command, **arguments))

    def answer(self, number):
        """Return the body of the response to a request."""
        while number not in self.responses:
            self.take()
        found = self.responses.pop(number)
        assert found["success"], found
        return found.get("body")

    def event(self, name):
        """Return the body of the next event of that name that was not taken yet."""
        while not (found := [each for each in self.events if each["event"] == name]):
            self.take()
        self.events.remove(found[0])
        return found[0].get("body")

    def take(self):
        """Take the next message."""
        message = self.next()
        if message["type"] == "event":
            self.events.append(message)
        else:
            self.responses[message["request_seq"]] = message

    def next(self):
        """Return the next message."""
        deadline = time.monotonic() + 30
        while True:
            head, found, rest = self.data.partition(b"\r\n\r\n")
            if found and len(rest) >= (length := int(head.partition(b":")[2])):
                self.data = rest[length:]
                return json.loads(rest[:length])
            assert select.select([self.descriptor], [], [], deadline - time.monotonic())[0], "no message came"
            more = self.read(1 << 16)
            assert more, "it has ended"
            self.data += more

    def attach(self, file, *lines, **arguments):
        """Begin a session with breakpoints, as IDEs do."""
        self.ask("initialize", adapterID="telegrad", clientID="test", pathFormat="path")
        attached = self.send("attach", **{"justMyCode": True, **arguments})
        self.event("initialized")
        self.break_at(file, *lines)
        self.ask("configurationDone")
        self.answer(attached)

    def break_at(self, file, *lines):
        found = self.ask("setBreakpoints", source={"path": str(file)}, breakpoints=[{"line": each} for each in lines])
        assert all(each["verified"] for each in found["breakpoints"])

    def stack(self):
        """Wait until a thread stops, and return its number and its frames, the innermost first."""
        thread = self.event("stopped")["threadId"]
        return thread, self.ask("stackTrace", threadId=thread)["stackFrames"]
