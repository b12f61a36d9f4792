"""An issuer's keys: found, kept, changed; and an issuer that doesn't answer as it should."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from backend.kernel.errors import ServiceUnavailable
from objects.users.adapters import http, keys
from tests.objects.sign_in.issuer import (
    CONFIGURATION,
    KEYS,
    Issuer,
    Said,
    ec_key,
    public_jwk,
    rsa_key,
)
from tests.objects.sign_in.openid import refused, verify
from tests.threads import at_once


def test_keys_are_requested_once(our_issuer):
    for _ in range(5):
        verify(our_issuer.token())
    assert (our_issuer.times_asked(CONFIGURATION), our_issuer.times_asked(KEYS)) == (1, 1)


def test_many_first_requests_ask_once(our_issuer):
    token = our_issuer.token()
    assert at_once([lambda: verify(token).id] * 8) == ["alice"] * 8
    assert our_issuer.times_asked(KEYS) == 1


def test_a_new_key_is_found_when_it_is_first_used(our_issuer):
    verify(our_issuer.token())
    old = our_issuer.token()
    our_issuer.keys = {"second": rsa_key(2)}
    with time_machine.travel(time.time() + 20, tick=False):
        assert verify(our_issuer.token(key_id="second")).id == "alice"
        assert refused(old), "the issuer has withdrawn the key"
    assert our_issuer.times_asked(KEYS) == 2


def test_invented_key_ids_do_not_make_the_service_ask(our_issuer):
    verify(our_issuer.token())
    for number in range(20):
        assert refused(our_issuer.token(key=rsa_key(2), key_id=f"invented-{number}"))
    assert our_issuer.times_asked(KEYS) == 1
    with time_machine.travel(time.time() + 20, tick=False):
        for number in range(20):
            assert refused(our_issuer.token(key=rsa_key(2), key_id=f"invented-{number}"))
    assert our_issuer.times_asked(KEYS) == 2


def test_keys_are_read_again_after_an_hour(our_issuer):
    verify(our_issuer.token())
    with time_machine.travel(time.time() + 3601, tick=False):
        verify(our_issuer.token())
    assert our_issuer.times_asked(KEYS) == 2


def test_a_token_without_key_id_is_checked_with_the_only_key(our_issuer):
    assert verify(our_issuer.token(key_id=None)).id == "alice"


def test_a_token_without_key_id_is_refused_among_several_keys(our_issuer):
    our_issuer.answers[KEYS] = Said(
        body={"keys": [public_jwk(rsa_key(1)), public_jwk(rsa_key(2)), public_jwk(ec_key(), "c")]}
    )
    assert refused(our_issuer.token(key_id=None))


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"n": 7},
        {"e": ""},
    ],
    ids=str,
)
def test_a_key_that_is_not_for_signatures_is_not_used(our_issuer, changes):
    our_issuer.answers[KEYS] = Said(
        body={"keys": ["x", None, {**public_jwk(rsa_key(1), "first"), **changes}]}
    )
    assert refused(our_issuer.token())


def test_a_key_that_is_too_short_is_not_used(our_issuer):
    our_issuer.keys = {"first": rsa_key(3, 1024)}
    with pytest.warns(UserWarning, match="key"):
        assert refused(our_issuer.token())


# -- An issuer that doesn't answer as it should ---------------------------------------------------


def unreachable(token):
    with pytest.raises(ServiceUnavailable) as caught:
        verify(token)
    assert caught.value.status == 503
    assert caught.value.message == "idp can't be reached at the moment."
    return True


def test_an_issuer_that_is_down_is_named(our_issuer):
    token = our_issuer.token()
    our_issuer.stop()
    assert unreachable(token)
    assert unreachable(token)


def test_known_keys_count_for_a_day_while_the_issuer_is_down(our_issuer):
    verify(our_issuer.token())
    our_issuer.answers[KEYS] = Said(500, {})
    with time_machine.travel(time.time() + 7200, tick=False):
        assert verify(our_issuer.token()).id == "alice"
    with time_machine.travel(time.time() + 90_000, tick=False):
        assert unreachable(our_issuer.token())


def test_an_issuer_that_is_back_is_queried_again(our_issuer):
    right = our_issuer.answers[KEYS]
    our_issuer.answers[KEYS] = Said(503, {})
    assert unreachable(our_issuer.token())
    assert unreachable(our_issuer.token())
    assert our_issuer.times_asked(KEYS) == 1, "not at once"
    our_issuer.answers[KEYS] = right
    with time_machine.travel(time.time() + 20, tick=False):
        assert verify(our_issuer.token()).id == "alice"


@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
@pytest.mark.parametrize(
    "message",
    [
        Said(404, {}),
        Said(200, b"not json"),
        Said(200, b"[" * 100_000),
        Said(200, b"\xff\xfe"),
        Said(200, []),
        Said(200, {}),
        Said(200, {"keys": [{}] * 101, "issuer": 7, "jwks_uri": 7}),
    ],
    ids=lambda message: f"{message.status} {str(message.body)[:12]}",
)
def test_an_answer_of_another_form_is_not_used(our_issuer, path, message):
    our_issuer.answers[path] = message
    assert unreachable(our_issuer.token())


def test_a_huge_key_list_is_not_read(our_issuer):
    keys = [public_jwk(rsa_key(1), "first"), {"kty": "x", "padding": "x" * 2 * 1024 * 1024}]
    our_issuer.answers[KEYS] = Said(body={"keys": keys})
    assert unreachable(our_issuer.token())


@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(our_issuer, path, status):
    with Issuer() as other:
        other.keys = our_issuer.keys
        our_issuer.answers[path] = Said(status, {}, {"Location": f"{other.url}{path}"})
        assert unreachable(our_issuer.token())
        assert other.asked == []


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "http://example.org/keys", "ftp://127.0.0.1/keys", "//x", "keys"]
)
def test_keys_are_not_read_from_just_anywhere(our_issuer, uri):
    our_issuer.answers[CONFIGURATION] = Said(body={"issuer": our_issuer.url, "jwks_uri": uri})
    assert unreachable(our_issuer.token())


def test_a_configuration_of_another_issuer_is_not_used(our_issuer):
    our_issuer.answers[CONFIGURATION] = Said(
        body={"issuer": "https://accounts.example.org", "jwks_uri": f"{our_issuer.url}{KEYS}"}
    )
    assert unreachable(our_issuer.token())


@pytest.fixture
def hanging(our_issuer, monkeypatch):
    """Let requests for a path hang until the test ends; the event says that one has come."""
    monkeypatch.setattr(http, "PATIENCE", 0.05)
    monkeypatch.setattr(keys, "PATIENCE", 0.05)
    done, threads = threading.Event(), []

    def hang(path, action, count=1):
        entered = threading.Barrier(count + 1)

        def answer(_):
            entered.wait(10)
            done.wait(10)
            return Said(404, {})

        our_issuer.answers[path] = answer
        threads.extend(threading.Thread(target=action) for _ in range(count))
        for thread in threads[-count:]:
            thread.start()
        entered.wait(10)

    yield hang
    done.set()
    for thread in threads:
        thread.join()


def test_an_issuer_that_hangs_does_not_hold_every_thread(our_issuer, hanging, settings):
    url = f"{our_issuer.url}/slow"
    hanging("/slow", lambda: http.fetch(url), count=settings.WEB_THREADS // 2)
    assert unreachable(our_issuer.token())


def test_no_one_waits_for_new_keys_while_there_are_old_ones(our_issuer, hanging):
    verify(our_issuer.token())
    with time_machine.travel(time.time() + 3601, tick=False):
        token = our_issuer.token()
        hanging(KEYS, lambda: refused(token))
        assert verify(token).id == "alice"


ENDLESS = {
    "a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    "a header": (b"HTTP/1.1 200 OK\r\nX-Name: ", b"x"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Name: x\r\n"),
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: x\r\n"),
}


@pytest.mark.parametrize("part", ENDLESS)
def test_an_answer_that_never_ends_is_given_up(our_issuer, monkeypatch, part):
    monkeypatch.setattr(http, "WHOLE_WAIT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening, *ENDLESS[part]))
        thread.start()
        with pytest.raises(http.Unreachable, match=r"took longer than 0\.1 seconds"):
            http.fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        thread.join()


@pytest.mark.parametrize("part", ENDLESS)
def test_an_answer_that_floods_is_given_up(our_issuer, part):
    """Long before the time is over."""
    first, again = ENDLESS[part]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening, first, again * 10_000, 0))
        thread.start()
        begun = time.monotonic()
        with pytest.raises(http.Unreachable, match=r"too large|isn't valid"):
            http.fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        assert time.monotonic() - begun < http.WHOLE_WAIT
        thread.join()


def drip(listening, first, again, pause=0.01):
    connection, _ = listening.accept()
    with connection, contextlib.suppress(OSError):
        connection.recv(65536)
        connection.sendall(first)
        while True:
            connection.sendall(again)
            time.sleep(pause)  # a slow sender, which is what is tested


def test_a_certificate_that_no_one_vouches_for_is_refused(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    with Issuer(context) as forged, pytest.raises(http.Unreachable, match="TLS with it failed"):
        http.fetch(f"https://localhost:{forged.port}{KEYS}")
    assert forged.asked == []


def self_signed(folder):
    key = rsa_key(1)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, SHA256())
    )
    file = folder / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return file
