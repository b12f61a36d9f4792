"""Who may connect: origins, keys, and how many at once."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings

from realtime.process.process import Process
from tests.realtime.in_process import Client, Echo, run
from tests.settings import SERVICE


@pytest.fixture(autouse=True)
def nobody_yet() -> None:
    Echo.came.clear()


def settings(**values: object) -> override_settings:
    return override_settings(SERVICE={**SERVICE, **values})


async def status_of(client: Client) -> int:
    """101 when the client is let in, which leaves then; otherwise HTTP's status."""
    await client.send_input({"type": "websocket.connect"})
    answer = await client.receive_output(10)
    if answer["type"] == "websocket.accept":
        await client.leave()
        return 101
    return int(answer["status"])


ORIGINS = ("https://app.example.org", "https://*.example.net", "http://localhost:3000")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("https://app.example.org", 101),
        ("https://APP.example.org", 101),
        ("http://localhost:3000", 101),
        ("https://a.example.net", 101),
        ("https://a.b.example.net", 101),
        ("https://example.net", 403),
        ("http://a.example.net", 403),
        ("https://a.example.net.evil.org", 403),
        ("https://evilexample.net", 403),
        ("https://evil.org/.example.net", 403),
        ("https://a.example.net:8443", 403),
        ("http://app.example.org", 403),
        ("https://app.example.org:444", 403),
        ("http://localhost:3001", 403),
        ("null", 403),
        ("", 403),
        ("https://[", 403),
    ],
)
def test_pages_of_other_origins_are_refused_if_there_is_a_list(origin, status):
    headers = {} if origin is None else {"origin": origin}
    with settings(WS_ALLOWED_ORIGINS=ORIGINS):
        assert run(status_of(Client(**headers))) == status


def test_any_origin_is_good_without_a_list():
    assert run(status_of(Client(origin="https://anywhere.example"))) == 101


QUERY = "applicationId=test-app"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/echo", {}, 403),
        (f"/echo?{QUERY}", {}, 403),
        (f"/echo?{QUERY}&javascriptKey=test-javascript-key", {}, 101),
        (f"/echo?{QUERY}&restApiKey=test-rest-key", {}, 101),
        (f"/echo?{QUERY}&clientKey=test-client-key", {}, 101),
        (f"/echo?{QUERY}&javascriptKey=wrong", {}, 403),
        ("/echo?applicationId=other&javascriptKey=test-javascript-key", {}, 403),
        # An address is written into logs: the master key doesn't belong there.
        (f"/echo?{QUERY}&masterKey=test-master-key", {}, 403),
        ("/echo", {"x_svc_application_id": "test-app", "x_svc_rest_api_key": "test-rest-key"}, 101),
        ("/echo", {"x_parse_application_id": "test-app", "x_parse_client_key": "nope"}, 403),
        ("/echo", {"x_svc_application_id": "test-app", "x_svc_master_key": "test-master-key"}, 101),
        ("/echo", {"x_svc_application_id": "test-app", "x_svc_master_key": "wrong"}, 403),
    ],
)
def test_a_key_can_be_required(path, headers, status):
    with settings(WS_REQUIRE_KEY=True):
        assert run(status_of(Client(path, **headers))) == status


def test_a_socket_whose_clients_give_keys_in_a_message_is_not_asked_for_them():
    class Later(Echo):
        keys_in_handshake = False

    with settings(WS_REQUIRE_KEY=True):
        assert run(status_of(Client(kind=Later))) == 101


def test_a_refusal_is_an_error_as_rest_has_it_and_repeats_no_key():
    with settings(WS_REQUIRE_KEY=True):
        status, body = run(Client(f"/echo?{QUERY}&javascriptKey=mine").refused())
    assert status == 403
    assert json.loads(body)["code"] == 262
    assert b"mine" not in body


def test_where_the_server_cannot_answer_by_http_the_handshake_is_closed():
    async def scenario() -> None:
        client = Client(origin="https://evil.org")
        client.scope["extensions"] = {}
        await client.send_input({"type": "websocket.connect"})
        assert (await client.receive_output(5))["type"] == "websocket.close"

    with settings(WS_ALLOWED_ORIGINS=ORIGINS):
        run(scenario())


def test_one_address_has_so_many_connections_and_no_more_until_one_ends():
    async def scenario() -> None:
        first, second = [await Client(peer=("192.0.2.1", 1)).open() for _ in range(2)]
        status, body = await Client(peer=("192.0.2.1", 2)).refused()
        assert (status, json.loads(body)["code"]) == (429, 155)
        other = await Client(peer=("192.0.2.2", 1)).open()
        await first.leave()
        third = await Client(peer=("192.0.2.1", 3)).open()
        for client in (second, other, third):
            await client.leave()
        assert Process.current().admission.total == 0
        assert Process.current().admission.refused == {429: 1}

    with settings(WS_MAX_PER_ADDRESS=2):
        run(scenario())


def test_addresses_of_one_ipv6_network_count_as_one():
    async def scenario() -> None:
        client = await Client(peer=("2001:db8::1", 1)).open()
        assert (await Client(peer=("2001:db8::ffff:2", 1)).refused())[0] == 429
        other = await Client(peer=("2001:db8:0:1::1", 1)).open()
        for item in (client, other):
            await item.leave()

    with settings(WS_MAX_PER_ADDRESS=1):
        run(scenario())


def test_ipv4_clients_of_a_dual_stack_socket_are_counted_one_by_one():
    async def scenario() -> None:
        client = await Client(peer=("::ffff:192.0.2.1", 1)).open()
        assert (await Client(peer=("::ffff:192.0.2.1", 2)).refused())[0] == 429
        other = await Client(peer=("::ffff:192.0.2.2", 1)).open()
        for opened in (client, other):
            await opened.leave()

    with settings(WS_MAX_PER_ADDRESS=1):
        run(scenario())


def test_clients_behind_our_proxy_are_told_apart_and_nobody_else_may_say_who_they_are():
    async def scenario() -> None:
        # Over the proxy's own Unix socket, where there is no peer.
        stream = await Client(x_forwarded_for="203.0.113.7, 198.51.100.1").open()
        assert Echo.came[-1].address == "198.51.100.1"
        assert (await Client(x_forwarded_for="198.51.100.1").refused())[0] == 429
        # A trusted proxy's word counts, another's doesn't.
        two = await Client(peer=("10.1.2.3", 1), x_forwarded_for="198.51.100.2").open()
        assert Echo.came[-1].address == "198.51.100.2"
        three = await Client(peer=("192.0.2.9", 1), x_forwarded_for="198.51.100.3").open()
        assert Echo.came[-1].address == "192.0.2.9"
        status = await status_of(Client(peer=("192.0.2.9", 1), x_forwarded_for="198.51.100.4"))
        assert status == 429
        for client in (stream, two, three):
            await client.leave()

    with settings(WS_MAX_PER_ADDRESS=1, TRUSTED_PROXIES=("10.0.0.0/8",)):
        run(scenario())


def test_a_process_has_so_many_connections_and_no_more():
    async def scenario() -> None:
        clients = [await Client(peer=(f"192.0.2.{item}", 1)).open() for item in range(3)]
        status, body = await Client(peer=("192.0.2.200", 1)).refused()
        assert (status, json.loads(body)["code"]) == (503, 1)
        for client in clients:
            await client.leave()

    with settings(WS_MAX_CONNECTIONS=3):
        run(scenario())


def test_zero_is_no_limit_and_without_an_address_nobody_is_counted_together():
    async def scenario() -> None:
        clients = [await Client(peer=("192.0.2.1", 1)).open() for _ in range(3)]
        for client in clients:
            await client.leave()

    async def without_address() -> None:
        clients = [await Client().open() for _ in range(3)]
        for client in clients:
            await client.leave()

    with settings(WS_MAX_CONNECTIONS=0, WS_MAX_PER_ADDRESS=0):
        run(scenario())
    with settings(WS_MAX_PER_ADDRESS=1):
        run(without_address())


def test_new_connections_of_an_address_have_a_rate():
    flood = {"path": "/sockets", "per": "ip", "count": 3, "window": 60, "approximate": True}

    async def scenario() -> list[int]:
        statuses = [await status_of(Client(peer=("192.0.2.77", item))) for item in range(4)]
        return [*statuses, await status_of(Client(peer=("192.0.2.78", 1)))]

    with settings(RATE_LIMITS=[flood]):
        assert run(scenario()) == [101, 101, 101, 429, 101]
