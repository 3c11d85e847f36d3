"""Every lane passes the one conformance suite."""

import pytest
from helpers.lanes import grpc, grpc_tls, in_process, tcp, tcp_tls, unix
from telegrad.testing.check_lane import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("lane", [in_process, grpc, grpc_tls, unix, tcp, tcp_tls])
def test_lane(lane, check, tmp_path):
    check(lane(tmp_path))
