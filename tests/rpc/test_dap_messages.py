"""Messages of the Debug Adapter Protocol in a stream, and the owners of connections."""

import os
import random
import socket

import pytest
from telegrad.base.errors import RpcError
from telegrad.base.tcp_owners import other_owner, own_sockets
from telegrad.rpc.debugging.dap_messages import (
    MOST_DAP_BYTES,
    MOST_HEADER_BYTES,
    WholeMessages,
    dap_message,
    is_disconnect,
)


def test_whole_messages_come_out_however_the_stream_is_cut():
    messages = [dap_message({"seq": number, "text": "x" * (number * 7 % 50)}) for number in range(40)]
    stream = b"".join(messages)
    for seed in range(50):
        whole, given, ends = WholeMessages(), b"", {0}
        for each in messages:
            ends.add(max(ends) + len(each))
        rest = stream
        while rest:
            size = random.Random(seed * 1000 + len(rest)).randrange(1, 200)
            given += b"".join(whole.add(rest[:size]))
            rest = rest[size:]
            assert len(given) in ends
        assert given == stream


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * MOST_HEADER_BYTES,
        b"Content-Length: %d\r\n\r\n" % (MOST_DAP_BYTES + 1),
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
    ],
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(RpcError, match="no message of the Debug Adapter Protocol"):
        WholeMessages().add(data)


def test_a_request_to_disconnect_is_known():
    assert is_disconnect(dap_message({"type": "request", "command": "disconnect"}))
    for content in ({"command": "evaluate", "arguments": {"expression": "disconnect"}}, ["disconnect"], "disconnect"):
        assert not is_disconnect(dap_message(content))
    assert not is_disconnect(b"Content-Length: 12\r\n\r\n{disconnect}")


def test_a_header_may_have_other_fields():
    message = b"Content-Type: x\r\ncontent-length: 2\r\n\r\n{}"
    assert WholeMessages().add(message + b"Con") == [message]


def test_the_owner_of_a_connection_within_this_machine_is_known():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        owner = other_owner(server)
        assert owner.user == os.geteuid() and owner.socket == os.fstat(client.fileno()).st_ino
        assert owner.socket in own_sockets()
