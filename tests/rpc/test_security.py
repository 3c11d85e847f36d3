"""The handshake: a peer without the secret, or of another name than was dialed, is refused and learns nothing."""

import itertools
import logging
import os
import random
import socket
import stat

import pytest
from telegrad.base.errors import AuthenticationError, RendezvousError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.lanes.addresses import check_exposure, host_towards, usual_address
from telegrad.rpc.links.refusals import LOG_SECONDS, Refusals
from telegrad.rpc.security import handshake, proofs
from telegrad.rpc.security.handshake import PROTOCOL, AcceptorHandshake, DialerHandshake, job_secret
from telegrad.rpc.security.joiners import CROWDED, HANDSHAKE_SECONDS, LATE, Joiners
from telegrad.rpc.security.private_file import open_private
from telegrad.rpc.security.proofs import sign

SECRET = b"known to the workers"
HERE, THERE = "grpc://127.0.0.1:1", "grpc://127.0.0.1:2"


def worker(name, address=HERE):
    return WorkerRecord(name=name, identity=name.encode() * 4, process_id=4711, addresses=[address], main_script="s.py")


def ends(secret=SECRET, expected=b"", address=HERE):
    return DialerHandshake(secret, worker("dialer", THERE), expected, address), AcceptorHandshake(SECRET, worker("acc"))


def test_two_workers_come_to_know_each_other():
    dialer, acceptor = ends(expected=b"acc" * 4)
    acceptor.check(dialer.prove(acceptor.challenge(dialer.hello())))
    dialer.check(acceptor.welcome())
    assert (dialer.peer.name, acceptor.peer.name) == ("acc", "dialer")
    assert acceptor.expected_identity == b"acc" * 4
    assert dialer.session_token() == acceptor.session_token()


def test_the_acceptor_says_nothing_before_the_proof():
    dialer, acceptor = ends(secret=b"another secret of the same kind")
    challenge = acceptor.challenge(dialer.hello())
    assert challenge == proofs.GREETING.pack(PROTOCOL, acceptor.nonce)
    with pytest.raises(AuthenticationError, match=r"^it does not know this job's secret$"):
        acceptor.check(dialer.prove(challenge))
    assert acceptor.peer == WorkerRecord()


def test_an_acceptor_without_the_secret_is_refused():
    dialer, _ = ends()
    false = AcceptorHandshake(b"another secret of the same kind", worker("acc"))
    dialer.prove(false.challenge(dialer.hello()))
    with pytest.raises(AuthenticationError, match=f"answers at {HERE} does not know.*same TELEGRAD_SECRET"):
        dialer.check(false.welcome())


def test_a_handshake_that_was_passed_on_is_refused_by_both_ends():
    dialer, acceptor = ends(address="grpc://127.0.0.1:6666")
    proof = dialer.prove(acceptor.challenge(dialer.hello()))
    with pytest.raises(AuthenticationError, match="address of another worker"):
        acceptor.check(proof)
    with pytest.raises(AuthenticationError, match=r"grpc://127.0.0.1:6666, which it does not announce"):
        dialer.check(acceptor.welcome())


def test_another_worker_than_expected_is_refused():
    dialer, acceptor = ends(expected=b"someone else")
    acceptor.check(dialer.prove(acceptor.challenge(dialer.hello())))
    with pytest.raises(AuthenticationError, match="another worker, 'acc', answers"):
        dialer.check(acceptor.welcome())


def test_a_refusal_is_signed_and_names_no_worker():
    dialer, acceptor = ends()
    acceptor.check(dialer.prove(acceptor.challenge(dialer.hello())))
    refusal = acceptor.welcome("you are not in this job")
    assert b"acc" not in refusal
    with pytest.raises(AuthenticationError):
        dialer.check(refusal[:-1] + b"!")
    with pytest.raises(ConnectionAbortedError, match="not in this job"):
        dialer.check(refusal)


def test_no_byte_of_a_handshake_can_be_changed():
    """Each message in turn, each byte of it."""
    for message, place in itertools.product(range(4), range(400)):
        dialer, acceptor = ends()

        def sent(number, text, message=message, place=place):
            if number != message or place >= len(text):
                return text
            return text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]

        texts = [dialer.hello()]
        try:
            texts.append(acceptor.challenge(sent(0, texts[0])))
            texts.append(dialer.prove(sent(1, texts[1])))
            acceptor.check(sent(2, texts[2]))
            texts.append(acceptor.welcome())
            dialer.check(sent(3, texts[3]))
        except AuthenticationError:
            continue

        assert place >= len(texts[message]), (message, place)


def test_a_proof_is_good_once():
    dialer, acceptor = ends()
    hello = dialer.hello()
    proof = dialer.prove(acceptor.challenge(hello))
    again = AcceptorHandshake(SECRET, worker("acc"))
    again.challenge(hello)
    with pytest.raises(AuthenticationError):
        again.check(proof)


def test_a_proof_is_not_good_in_the_other_direction():
    dialer, acceptor = ends()
    proof = dialer.prove(acceptor.challenge(dialer.hello()))
    with pytest.raises(AuthenticationError):
        dialer.check(proof[proofs.NONCE_BYTES :])


def test_lengths_of_parts_are_signed():
    assert len({sign(SECRET, b"a", *parts) for parts in ([b"bc"], [b"b", b"c"], [b"bc", b""], [])}) == 4
    assert sign(SECRET, b"ab", b"c") != sign(SECRET, b"a", b"bc")


def test_another_protocol_is_named():
    dialer, _ = ends()
    dialer.hello()
    with pytest.raises(AuthenticationError, match=f"speaks protocol {PROTOCOL + 1}, this worker {PROTOCOL};"):
        dialer.prove(proofs.GREETING.pack(PROTOCOL + 1, bytes(32)))
    with pytest.raises(AuthenticationError, match="is no worker of this job"):
        dialer.prove(b"220 mail.example.org ESMTP")


@pytest.mark.parametrize("given", ["", "x", "x" * 15])
def test_a_short_secret_is_refused(given, monkeypatch):
    monkeypatch.setenv("TELEGRAD_SECRET", given)
    with pytest.raises(AuthenticationError, match=f"TELEGRAD_SECRET holds a secret of {len(given)} bytes.*at least 16"):
        job_secret()


def test_the_users_secret(tmp_path, monkeypatch):
    monkeypatch.delenv("TELEGRAD_SECRET", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert len(job_secret()) == 64 and job_secret() == job_secret()
    path = tmp_path / "telegrad" / "secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short")
    with pytest.raises(AuthenticationError, match="secret of 5 bytes"):
        job_secret()


def test_a_secret_may_be_any_bytes(monkeypatch):
    monkeypatch.setenv("TELEGRAD_SECRET", os.fsdecode(bytes(range(224, 256))))
    assert job_secret() == bytes(range(224, 256))


@pytest.mark.parametrize("folder", ["/dev/null", "/proc/nowhere"])
def test_a_users_secret_that_cannot_be_kept(folder, monkeypatch):
    monkeypatch.delenv("TELEGRAD_SECRET", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", folder)
    with pytest.raises(AuthenticationError, match=f"the file of your secret, {folder}.*set TELEGRAD_SECRET"):
        job_secret()


def test_a_users_secret_in_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.delenv("TELEGRAD_SECRET", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    secret = job_secret()
    monkeypatch.setattr(handshake, "_make_secret", lambda path: pytest.fail("it is there already"))
    assert job_secret() == secret


# -- files


def test_files_that_are_not_this_users_own(tmp_path):
    good, link, pipe, server = (tmp_path / name for name in ("good", "link", "pipe", "server"))
    good.touch(0o600)
    os.close(open_private(str(good), os.O_RDWR, stat.S_IWOTH))
    link.symlink_to(good)
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(server))
        for path in (link, pipe, server, "/dev/null", "/dev/tty", tmp_path):
            for flags in (os.O_RDONLY, os.O_RDWR):
                with pytest.raises(OSError):
                    open_private(str(path), flags, 0)  # at once: a FIFO would wait for its other end
    good.chmod(0o602)
    with pytest.raises(OSError, match="others may use it: mode 602"):
        open_private(str(good), os.O_RDONLY, stat.S_IWOTH)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user(tmp_path):
    (tmp_path / "theirs").touch(0o600)
    os.chown(tmp_path / "theirs", 12345, -1)
    with pytest.raises(OSError, match="it belongs to user 12345, you are user 0"):
        open_private(str(tmp_path / "theirs"), os.O_RDONLY, 0)


# -- addresses


@pytest.mark.parametrize(
    ("given", "usual"),
    [
        ("localhost:80", "127.0.0.1:80"),
        ("127.0.0.1:080", "127.0.0.1:80"),
        ("::1:80", "[::1]:80"),
        ("[::1]:80", "[::1]:80"),
        ("[0:0:0:0:0:0:0:1]:80", "[::1]:80"),
        ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ("127.1.2.3:80", "127.1.2.3:80"),
        ("Node0.Example.org:80", "node0.example.org:80"),
        ("[FE80::0:1]:80", "[fe80::1]:80"),
    ],
)
def test_an_address_has_one_spelling(given, usual):
    assert usual_address(given) == usual


@pytest.mark.parametrize("given", ["0.0.0.0", "[::]", "::"])
def test_every_address_means_the_loopback(given, caplog):
    with caplog.at_level(logging.WARNING, "telegrad.rpc"):
        assert usual_address(f"{given}:80") == "127.0.0.1:80"
    assert "other workers cannot dial; 127.0.0.1 is used" in caplog.text


@pytest.mark.parametrize("given", ["", "[]", "a b", "user@host", "host/path", "fe80::1%eth0"])
def test_what_is_no_host(given):
    with pytest.raises(RendezvousError, match="neither a name nor an address of a host"):
        usual_address(f"{given}:80")


@pytest.mark.parametrize("given", ["127.0.0.999", "1.2.3.4", "example.org", "::2", "127.example.org"])
def test_other_networks_need_tls_or_a_written_word(given):
    check_exposure("MASTER_ADDR", given, secured=True)
    words = rf"MASTER_ADDR is '{given}': .* one machine write 127\.0\.0\.1.*run --nnodes.*tls=TlsFiles.*or write insecure=True"
    with pytest.raises(RendezvousError, match=words):
        check_exposure("MASTER_ADDR", given, secured=False)


@pytest.mark.parametrize("given", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_the_loopback_needs_neither(given):
    check_exposure("MASTER_ADDR", given, secured=False)


def test_the_address_from_which_a_host_is_reached():
    assert host_towards("127.0.0.1:80") == "127.0.0.1"
    assert host_towards("[::1]:80") == "::1"
    with pytest.raises(RendezvousError, match=r"'nowhere\.invalid' has no address"):
        host_towards("nowhere.invalid:80")


# -- joiners that have not answered their challenge


def test_a_challenge_is_answered_once_in_time_and_from_its_address():
    joiners = Joiners()
    for nonce in (b"1", b"2", b"3"):
        assert joiners.add(nonce, "a", nonce, 0.0) == []
    assert joiners.take(b"1", "b", 1.0) is None
    assert joiners.take(b"1", "a", 1.0) == b"1"
    assert joiners.take(b"1", "a", 1.0) is None
    assert joiners.take(b"2", "a", HANDSHAKE_SECONDS) is None
    assert joiners.add(b"4", "a", b"4", HANDSHAKE_SECONDS) == [("a", LATE)]
    assert len(joiners) == 1


def test_whoever_opens_many_displaces_itself():
    joiners = Joiners(most=6, most_per_address=4)
    for number in range(4):
        assert joiners.add(b"%d" % number, "many", number, 0.0) == []
    assert joiners.add(b"4", "many", 4, 0.0) == [("many", CROWDED)]
    assert joiners.take(b"0", "many", 0.0) is None  # the oldest
    for number in range(5, 7):
        assert joiners.add(b"%d" % number, "one more", number, 0.0) == []
    assert joiners.add(b"7", "honest", 7, 0.0) == [("many", CROWDED)]
    assert joiners.take(b"7", "honest", 0.0) == 7


@pytest.mark.parametrize("seed", range(20))
def test_joiners_stay_few_whatever_happens(seed):
    rng, joiners, now = random.Random(seed), Joiners(most=20, most_per_address=8), 0.0
    open_now, gone = {}, 0
    for number in range(500):
        now += rng.random()
        if rng.random() < 0.7:
            nonce, address = b"%d" % number, rng.choice("abcd")
            gone += len(joiners.add(nonce, address, number, now))
            open_now[nonce] = (address, now, number)
        elif open_now:
            nonce = rng.choice(list(open_now))
            address, since, handshake = open_now.pop(nonce)
            taken = joiners.take(nonce, address, now)
            assert taken in (None, handshake) and (taken is None or now < since + HANDSHAKE_SECONDS)
        assert len(joiners) <= 20
    assert gone


def test_refusals_are_counted_and_logged_now_and_then(caplog):
    now = 0.0
    refusals = Refusals("w", lambda: now)
    with caplog.at_level(logging.WARNING, "telegrad.rpc"):
        for _ in range(1000):
            refusals.add("ipv4:127.0.0.1", "why")
        now = LOG_SECONDS
        refusals.add("ipv4:127.0.0.2", "why not")
    assert refusals.counts() == {"why": 1000, "why not": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "worker 'w' refused a joiner at ipv4:127.0.0.1: why",
        "worker 'w' refused a joiner at ipv4:127.0.0.2: why not (and 999 others since the last such line)",
    ]
