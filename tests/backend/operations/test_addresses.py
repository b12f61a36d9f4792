"""The addresses of PostgreSQL and Redis as each library wants them."""

from __future__ import annotations

import subprocess

import pytest
from kombu import Connection
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry

from backend.instance.folder import DataFolder
from backend.operations.embedded.binaries import engine_binaries
from backend.operations.processes.banner import is_unreachable
from backend.settings.addresses import celery_broker, django_database, with_password
from backend.settings.environment import BadSetting, site_url
from tests.ports import free_port


def test_a_database_address_over_tcp():
    entry = django_database(
        "postgresql://me:p%40ss@db.example:5433/shop?sslmode=require", {}, "web"
    )
    assert [entry[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")] == [
        "shop",
        "me",
        "p@ss",
        "db.example",
        "5433",
    ]
    assert entry["OPTIONS"]["sslmode"] == "require"
    assert entry["OPTIONS"]["application_name"] == "web"


def test_a_database_address_over_a_socket():
    entry = django_database("postgresql:///shop?host=%2Frun%2Fpg%20one&user=me", {}, "web")
    assert (entry["NAME"], entry["USER"], entry["HOST"]) == ("shop", "me", "/run/pg one")


def test_timeouts_are_added_to_the_address_s_own_options():
    url = "postgresql://db/shop?options=-c%20jit%3Doff"
    entry = django_database(url, {"lock_timeout": 5000, "statement_timeout": 9}, "web")
    expected = "-c jit=off -c lock_timeout=5000 -c statement_timeout=9"
    assert entry["OPTIONS"]["options"] == expected


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@db:5432",
        "postgresql://:secret@h/d?no=1",
        "postgresql://me:p@secret/w@h:5432/shop",
        "postgresql://me:secret/w@h:5432/shop",
    ],
)
def test_an_address_that_makes_no_sense_is_refused_without_being_repeated(url: str):
    with pytest.raises(BadSetting) as refused:
        django_database(url, {}, "web")
    assert "DATABASE_URL" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://:secret@cache:6379/3", "redis://:secret@cache:6379/3"),
        ("rediss://cache/0", "rediss://cache/0"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/a%20b%2541.sock", "redis+socket:///run/a%20b%2541.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=7", "redis+socket:///run/redis.sock?virtual_host=7"),
    ],
)
def test_a_redis_address_in_celery_s_words(url: str, broker: str):
    assert celery_broker(url) == broker


@pytest.mark.parametrize("password", ["plain", "p@ss/w:rd", "%41 ?#&=+[]", "ü\"'"])
def test_a_password_of_any_characters_is_added(password: str):
    url = with_password("postgresql://me@db.example:5433/shop", "DATABASE_URL", password)
    entry = django_database(url, {}, "web")
    assert (entry["USER"], entry["PASSWORD"], entry["HOST"]) == ("me", password, "db.example")
    assert (entry["PORT"], entry["NAME"]) == ("5433", "shop")


def test_without_a_password_or_an_address_nothing_is_added():
    assert with_password("postgresql://me@db/shop", "DATABASE_URL", "") == "postgresql://me@db/shop"
    assert with_password("", "DATABASE_URL", "secret") == ""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://me:former@db/shop", "has a password already"),
        ("postgresql://db/shop", "names no user"),
    ],
)
def test_a_password_that_does_not_fit_the_address_is_refused(url: str, problem: str):
    with pytest.raises(BadSetting, match=problem) as refused:
        with_password(url, "DATABASE_URL", "secret")
    assert "secret" not in str(refused.value)
    assert "former" not in str(refused.value)


@pytest.mark.parametrize("password", ["p@ss/w:rd", "%41\"\\ 'x"])
def test_both_clients_reach_a_redis_with_a_password(folder: DataFolder, password: str):
    account = folder.prepare()
    program = engine_binaries(account, folder.runtime).redis_server
    port, path = free_port(), folder.path / "own.sock"
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    settings = (
        f'bind 127.0.0.1\nport {port}\nunixsocket "{path}"\nrequirepass "{escaped}"\nsave ""\n'
    )
    server = subprocess.Popen([program, "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        assert server.stdin
        server.stdin.write(settings.encode())
        server.stdin.close()
        for address in (f"redis://127.0.0.1:{port}/3", f"unix://{path}?db=3"):
            url = with_password(address, "REDIS_URL", password)
            retry = Retry(ConstantBackoff(0.05), 200)
            with Redis.from_url(url, retry=retry, retry_on_error=[ConnectionError]) as client:
                assert client.ping()
            with Connection(celery_broker(url)) as broker:
                queue = broker.SimpleQueue("own")
                queue.put("a message")
                assert queue.get(timeout=10).payload == "a message"
                queue.close()
    finally:
        server.terminate()
        server.wait(10)


@pytest.mark.parametrize(
    ("sites", "url"),
    [
        ("https://api.example.org", "https://api.example.org"),
        ("https://localhost:8443", "https://localhost:8443"),
        ("https://api.example.org, https://files.example.org", "https://api.example.org"),
        ("https://*.example.org, https://api.example.org", "https://api.example.org"),
        ("http://:8000", ""),
        ("https://[", ""),
        ("api.example.org", ""),
        ("", ""),
    ],
)
def test_the_public_address_follows_the_address_of_the_site(
    monkeypatch: pytest.MonkeyPatch, sites: str, url: str
):
    monkeypatch.setenv("SITE_ADDRESS", sites)
    assert site_url("SITE_ADDRESS") == url


def test_a_public_site_on_the_loopback_interface_is_unreachable():
    assert is_unreachable("https://api.example.org", "127.0.0.1")
    assert not is_unreachable("https://api.example.org", "0.0.0.0")
    assert not is_unreachable("https://localhost:8443", "127.0.0.1")
    assert not is_unreachable("", "127.0.0.1")
