"""Where webhooks may be sent, and how long that may take."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from backend.kernel.outgoing import Unreachable, sockets
from backend.kernel.outgoing.addresses import is_allowed, resolved
from functions.webhooks import client
from tests.functions.webhooks.receiver import Receiver
from tests.rest import Api

OUTSIDE = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::8.8.8.8"]
INSIDE = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1"),
    *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "fec0::1"),
    "2001:0:53aa:64c:0:fbf0:80ff:fffe",  # Teredo of 127.0.0.1
]


@pytest.mark.parametrize("address", OUTSIDE)
def test_the_internet_is_called(address: str) -> None:
    assert is_allowed(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", INSIDE)
def test_other_networks_are_not(address: str) -> None:
    assert not is_allowed(ipaddress.ip_address(address))
    with pytest.raises(Unreachable, match="isn't called"):
        resolved(address, 443, 5)


def test_networks_of_one_s_own_are_called_if_the_settings_name_them(settings: Any) -> None:
    networks = ("10.0.0.0/8", "fd00::/8", "::1/128")
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": networks}
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "::1"):
        assert is_allowed(ipaddress.ip_address(address))
    for address in ("127.0.0.1", "169.254.169.254", "192.168.1.1", "fe80::1"):
        assert not is_allowed(ipaddress.ip_address(address))


@pytest.mark.parametrize("url", ["https://localhost/x", "https://127.1/x", "https://2130706433/x"])
def test_a_name_that_leads_inside_is_refused_when_it_is_called(master: Api, url: str) -> None:
    reply = master.post("/hooks/functions", {"functionName": "greet", "url": url})
    assert reply.status == 200
    reply = master.post("/functions/greet")
    assert reply.error == (400, 141)
    assert "its address is in a network that isn't called; " in reply.json["error"]
    assert "WEBHOOK_ALLOW_PRIVATE" in reply.json["error"]


def test_a_name_that_no_one_knows_is_141(master: Api) -> None:
    url = "https://nowhere.invalid/"
    master.post("/hooks/functions", {"functionName": "greet", "url": url})
    reply = master.post("/functions/greet")
    assert reply.error == (400, 141)
    assert reply.json["error"].endswith("its host name isn't known.")


def test_a_name_is_resolved_once_and_what_was_checked_is_connected_to(
    master: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: asked a second time, the name would lead somewhere else."""
    observed: list[str] = []
    real = socket.getaddrinfo

    def lookup(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "rebinding.test":
            return real(host, port, *args, **kwargs)
        observed.append(host)
        return real("127.0.0.1" if len(observed) == 1 else "127.0.0.2", port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    receiver.on("/greet", {"success": 1})
    url = f"http://rebinding.test:{receiver.port}/greet"
    assert master.post("/hooks/functions", {"functionName": "greet", "url": url}).status == 200
    observed.clear()  # the declaration resolves it too
    assert master.post("/functions/greet").json == {"result": 1}
    assert observed == ["rebinding.test"]
    assert receiver.received[0].headers["host"] == f"rebinding.test:{receiver.port}"


def test_http_is_for_networks_of_one_s_own(settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("10.0.0.0/8",)}
    with pytest.raises(Unreachable, match=r"by https only.*WEBHOOK_ALLOW_PRIVATE"):
        client.post("http://93.184.216.34/", b"{}", {})


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, settings: Any) -> dict[str, list[str]]:
    """Addresses that the resolver has for host names; 127.0.0.0/8 is the deployment's own."""
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    addresses: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def lookup(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        return [
            entry
            for address in addresses.get(host, [host])
            for entry in real(address, port, *args, **kwargs)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return addresses


@pytest.mark.parametrize("address", ["93.184.216.34", "10.0.0.1"])
def test_a_name_outside_of_one_s_own_networks_is_not_declared_with_http(
    master: Api, names: dict[str, list[str]], address: str
) -> None:
    names["hooks.test"] = [address]
    hook = {"functionName": "greet", "url": "http://hooks.test/x"}
    reply = master.post("/hooks/functions", hook)
    assert reply.error == (400, 143)
    assert reply.json["error"].startswith("invalid hook declaration: url can't be called: ")
    assert "WEBHOOK_ALLOW_PRIVATE" in reply.json["error"]
    assert "hooks.test" not in reply.json["error"]
    secure = {**hook, "url": "https://hooks.test/x"}
    assert master.post("/hooks/functions", secure).json == secure
    assert master.put("/hooks/functions/greet", {"url": hook["url"]}).error == (400, 143)


def test_a_name_that_is_not_known_yet_is_declared_with_http(
    master: Api, names: dict[str, list[str]]
) -> None:
    hook = {"functionName": "greet", "url": "http://later.invalid/x"}
    assert master.post("/hooks/functions", hook).json == hook


def test_http_uses_the_address_in_one_s_own_networks_whatever_its_place(
    master: Api, receiver: Receiver, names: dict[str, list[str]]
) -> None:
    names["both.test"] = ["93.184.216.34", "127.0.0.1"]
    receiver.on("/greet", {"success": 1})
    url = f"http://both.test:{receiver.port}/greet"
    assert master.post("/hooks/functions", {"functionName": "greet", "url": url}).status == 200
    assert master.post("/functions/greet").json == {"result": 1}


def test_a_port_where_no_one_listens_is_141(master: Api, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
        master.post("/hooks/functions", {"functionName": "greet", "url": url})
        reply = master.post("/functions/greet")
    assert reply.json["error"].endswith("the connection was refused.")


# -- Time -----------------------------------------------------------------------------------------


@contextmanager
def speaking(pieces: Iterator[bytes], pause: float) -> Iterator[str]:
    """A server that says these, one after the other; its address."""
    ended = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            for piece in pieces:
                if ended.wait(pause):
                    return
                try:
                    connection.sendall(piece)
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            ended.set()
            thread.join()


def dripping(beginning: bytes) -> Iterator[bytes]:
    yield beginning
    while True:
        yield b"x"


@pytest.mark.parametrize(
    "beginning",
    [b"", b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"],
)
def test_the_time_limit_is_for_all_of_it(settings: Any, beginning: bytes) -> None:
    own = {"WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",), "WEBHOOK_TIMEOUT": 1}
    settings.SERVICE = {**settings.SERVICE, **own}
    begun = monotonic()
    with (
        speaking(dripping(beginning), 0.05) as url,
        pytest.raises(Unreachable, match="it took longer than 1 seconds"),
    ):
        client.post(url, b"{}", {})
    assert monotonic() - begun < 5


@pytest.mark.parametrize("message", [b"nonsense\r\n\r\n", b"\0" * 100_000])
def test_what_is_not_http_is_no_answer(settings: Any, message: bytes) -> None:
    own = {"WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",), "WEBHOOK_TIMEOUT": 5}
    settings.SERVICE = {**settings.SERVICE, **own}
    with speaking(iter([message]), 0) as url, pytest.raises(Unreachable):
        client.post(url, b"{}", {})


def test_half_of_the_threads_wait_for_webhooks_at_most(receiver: Receiver, settings: Any) -> None:
    may_answer = threading.Event()
    url = receiver.on("/", lambda item: may_answer.wait(30))
    most = settings.WEB_THREADS // 2
    waiting = [threading.Thread(target=client.post, args=(url, b"{}", {})) for _ in range(most)]
    for item in waiting:
        item.start()
    try:
        receiver.wait_for(most)
        with pytest.raises(Unreachable, match="too many requests"):
            client.post(url, b"{}", {})
    finally:
        may_answer.set()
        for item in waiting:
            item.join()
    assert client.post(url, b"{}", {}).status == 200


# -- TLS ------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for the name good.test, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "good.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("good.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "good.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.parametrize(
    ("host", "trusted", "works"),
    [("good.test", True, True), ("other.test", True, False), ("good.test", False, False)],
)
def test_tls_is_verified_for_the_name_in_the_address(
    receiver: Receiver,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    trusted: bool,
    works: bool,
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    receiver.speak_tls(server)
    receiver.on("/", {"success": 1})
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    real = socket.getaddrinfo

    def lookup(name: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if str(name).endswith(".test") else name, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    sockets.tls.cache_clear()
    url = f"https://{host}:{receiver.port}/"
    try:
        if works:
            assert client.post(url, b"{}", {}).body == b'{"success": 1}'
        else:
            with pytest.raises(Unreachable, match="TLS with it failed"):
                client.post(url, b"{}", {})
    finally:
        sockets.tls.cache_clear()
