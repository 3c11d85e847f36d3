"""Options of gRPC for the channels and the server of a lane."""

from __future__ import annotations

import resource

from ..security.joiners import HANDSHAKE_SECONDS

MESSAGE_BYTES = 4 * 1024 * 1024  # the largest message is a chunk or a batch of small frames
METADATA_BYTES = 16 * 1024
LONGEST_MILLISECONDS = 2**31 - 1  # largest value of an option; for gRPC it means "never"
STREAMS = 4  # of a connection: frames, bulk, and the challenge before them
OPTIONS = [
    ("grpc.so_reuseport", 0),  # with it, two servers would share a port and neither would notice
    ("grpc.enable_http_proxy", 0),  # a proxy of the environment could read and change messages
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 50),  # low, because the peer chooses how often it pings
]


def options_for(keepalive: float) -> list[tuple[str, int]]:
    """Return gRPC's options for an agent that asks for a sign of life after ``keepalive`` seconds of silence."""
    milliseconds = max(int(min(keepalive * 1000, LONGEST_MILLISECONDS)), 1)
    return [
        *OPTIONS,
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        ("grpc.http2.ping_timeout_ms", milliseconds),  # else it is a minute, whatever keepalive says
        ("grpc.http2.min_ping_interval_without_data_ms", milliseconds // 2),
    ]


def server_options(keepalive: float) -> list[tuple[str, int]]:
    """Return gRPC's options for a server, with limits for peers that have not proven that they know the secret."""
    milliseconds = int(HANDSHAKE_SECONDS * 1000)
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return [
        *options_for(keepalive),
        ("grpc.server_handshake_timeout_ms", milliseconds),
        ("grpc.max_connection_idle_ms", milliseconds),  # idle: without a stream
        ("grpc.max_concurrent_streams", STREAMS),
        ("grpc.max_allowed_incoming_connections", max(descriptors // 2, 1)),  # the process needs descriptors too
    ]
