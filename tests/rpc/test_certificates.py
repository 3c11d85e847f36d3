"""Certificates are made for one job and one worker, and are checked before they are used."""

import asyncio
import ssl

import pytest
from cryptography import x509
from helpers.certificates import authority, tls_files, worker_tls
from telegrad.base.errors import AuthenticationError
from telegrad.rpc.certificates import Authority
from telegrad.rpc.lanes.grpc_channel import _probe
from telegrad.rpc.security.tls import load


def test_a_certificate_names_its_worker_and_its_job(tmp_path):
    tls = worker_tls(tmp_path / "w", authority("a.job"), "rank3")
    assert tls.names == ("rank3.a.job", "a.job")
    assert tls.name_of("rank5.a.job", "10.0.0.1") == "rank5.a.job"
    assert tls.name_of("", "10.0.0.1") == "a.job"


def test_without_a_name_of_rank_0_its_host_is_checked(tmp_path):
    files = tls_files(tmp_path / "w", authority(), "w")
    assert load(type(files)(files.certificate, files.key, files.ca)).name_of("", "node0") == "node0"


def test_each_key_is_another_and_the_authority_keeps_its_own(tmp_path):
    jobs = authority()
    first, second = (jobs.issue("w") for _ in range(2))
    assert first.key != second.key
    assert b"PRIVATE" not in jobs.certificate + first.certificate
    own = x509.load_pem_x509_certificate(first.certificate)
    own.verify_directly_issued_by(x509.load_pem_x509_certificate(jobs.certificate))
    with pytest.raises(Exception):  # noqa: B017  # cryptography's InvalidSignature has no text
        own.verify_directly_issued_by(x509.load_pem_x509_certificate(authority().certificate))


def test_the_certificates_pass_the_strictest_check(tmp_path):
    """RFC 5280, as Python's default contexts check from 3.13 on."""
    jobs = authority()
    context = worker_tls(tmp_path / "near", jobs, "near").client_context()
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    _shake(context, worker_tls(tmp_path / "far", jobs, "far").server_context(), f"far.{jobs.job}")


def _shake(near, far, name):
    """Carry out a TLS handshake in memory."""
    pipes = [ssl.MemoryBIO(), ssl.MemoryBIO()]
    ends = [
        near.wrap_bio(pipes[0], pipes[1], server_hostname=name),
        far.wrap_bio(pipes[1], pipes[0], server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
    assert [end.version() for end in ends] == ["TLSv1.3"] * 2
    return ends


@pytest.mark.parametrize("intruder", ["other job", "expired"])
def test_both_ends_refuse_a_certificate_that_is_not_good(tmp_path, intruder):
    jobs = authority()
    good = worker_tls(tmp_path / "good", jobs, "w")
    false = Authority(jobs.job) if intruder == "other job" else jobs
    files = tls_files(tmp_path / "bad", false, "w", ca=jobs.certificate)
    bad = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    bad.load_cert_chain(files.certificate, files.key)
    context = good.client_context()
    if intruder == "expired":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old = authority(days=-0.001)
        context.load_verify_locations(cadata=old.certificate.decode())
        issued = tls_files(tmp_path / "old", old, "w")
        bad.load_cert_chain(issued.certificate, issued.key)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired" if intruder == "expired" else "verify failed"):
        _shake(context, bad, f"w.{jobs.job}")


async def test_a_certificate_that_expires_during_the_job_is_called_that(tmp_path):
    jobs = authority()
    good = worker_tls(tmp_path / "good", jobs, "a")
    jobs._days = -0.001
    old = tls_files(tmp_path / "old", jobs, "b")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(old.certificate, old.key)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        with pytest.raises(
            AuthenticationError, match=r"'b.job.test': .* expired; make certificates that are valid for"
        ):
            await _probe(target, good, "b.job.test")
    finally:
        server.close()
        await server.wait_closed()


# -- files that cannot be used


def test_files_that_are_not_there(tmp_path):
    files = tls_files(tmp_path / "w", authority(), "w")
    files.ca.unlink()
    with pytest.raises(AuthenticationError, match=r"the file .*/ca of tls= cannot be read: No such file"):
        load(files)


@pytest.mark.parametrize("part", ["certificate", "key", "ca"])
def test_files_that_are_not_pem(tmp_path, part):
    files = tls_files(tmp_path / "w", authority(), "w")
    getattr(files, part).write_bytes(b"not a certificate")
    with pytest.raises(AuthenticationError, match="must be PEM files"):
        load(files)


def test_a_key_that_belongs_to_another_certificate(tmp_path):
    jobs = authority()
    files, others = (tls_files(tmp_path / name, jobs, "w") for name in "ab")
    files.key.write_bytes(others.key.read_bytes())
    with pytest.raises(AuthenticationError, match="belongs to another key"):
        load(files)


def test_a_certificate_of_another_authority(tmp_path):
    files = tls_files(tmp_path / "w", authority(), "w", ca=authority().certificate)
    with pytest.raises(
        AuthenticationError, match=r"not signed by the authority .*ca, so that .* (unable to get|certificate)"
    ):
        load(files)


def test_an_expired_certificate(tmp_path):
    with pytest.raises(AuthenticationError, match=r"is valid from .* to .* UTC, and this machine's clock says"):
        load(tls_files(tmp_path / "w", authority(days=-0.001), "w"))


def test_a_key_that_others_can_read(tmp_path):
    files = tls_files(tmp_path / "w", authority(), "w")
    files.key.chmod(0o604)
    with pytest.raises(AuthenticationError, match=r"others can read the key .*chmod 600"):
        load(files)


def test_a_certificate_without_a_name(tmp_path):
    jobs = authority()
    files = tls_files(tmp_path / "w", jobs, "w")
    files.certificate.write_bytes(jobs.certificate)
    key = jobs._key.private_bytes(*_as_pem())
    files.key.write_bytes(key)
    with pytest.raises(AuthenticationError, match=r"names no host.*subject alternative name"):
        load(files)


def _as_pem():
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
