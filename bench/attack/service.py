"""The service that is attacked: all of ``script/server`` with its defaults, and data of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from backend.instance.folder import temporary_folder
from bench import servers
from bench.attack.scene import CORPUS, HEAVY, MOUNT, VICTIM, Scene
from bench.client import Client, create_all
from bench.failure import BenchFailure
from bench.measure import say

_HOST = "127.0.0.1"
_PASSED_ON = ("PATH", "HOME", "LANG", "ENGINE_USER")
_KEYS = {
    "APP_ID": "attack",
    "REST_API_KEY": "attack-rest-key",
    "MASTER_KEY": "attack-master-key-of-some-length",
    "SECRET_KEY": "attack-secret-key",
}
_CLIENT = {
    "X-Svc-Application-Id": _KEYS["APP_ID"],
    "X-Svc-REST-API-Key": _KEYS["REST_API_KEY"],
}
_MASTER = {**_CLIENT, "X-Svc-Master-Key": _KEYS["MASTER_KEY"]}
_START = 120.0
"""Seconds that the service may take to start."""
_FILE_SIZE = 20 * 1024 * 1024
_PASSWORD = "a password that isn't guessed"
_FLOODED = ("Flooded", *(f"Flooded{number}" for number in range(8)))


@dataclass(frozen=True, slots=True)
class Service:
    """A running service; ``pid`` is the process above all of its processes."""

    scene: Scene
    pid: int


@contextlib.contextmanager
def running(corpus: int) -> Iterator[Service]:
    """Start it on a free loopback port with a fresh data folder, fill it, and stop it at the end.

    ``corpus`` is the number of objects with long texts that expensive queries go over.
    """
    port = servers.free_port()
    with temporary_folder("svc-attack-") as folder:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
            **_KEYS,
            "ENV_FILE": os.devnull,
            "DATA_DIR": str(folder.path),
            "LISTEN_HOST": _HOST,
            "PORT": str(port),
            "PUBLIC_URL": f"http://{_HOST}:{port}",
            "LOG_LEVEL": "WARNING",
        }
        command = [sys.executable, "-m", "backend.embedded"]
        log = servers.LOGS / "attack.log"
        say(f"starting the service on port {port}; its log is {log.relative_to(servers.ROOT)}")
        with servers.running("script/server", command, servers.ROOT, environment, log) as pid:
            _wait_until_ready(port)
            yield Service(_fill(port, corpus), pid)


def _wait_until_ready(port: int) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"http://{_HOST}:{port}/ready", timeout=10).status_code == 200:
                return
        time.sleep(0.2)
    raise BenchFailure(f"the service isn't ready after {_START:.0f} seconds")


def commit() -> str:
    """The commit that is attacked."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=servers.ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _fill(port: int, corpus: int) -> Scene:
    say(f"creating {corpus} objects")
    with _open(port, _MASTER) as master:
        for name in (VICTIM, CORPUS, HEAVY, *_FLOODED):
            master.send("POST", f"/schemas/{name}", {"fields": _FIELDS.get(name, {})})
        victim = {"username": "victim", "password": _PASSWORD, "email": "victim@example.org"}
        master.send("POST", "/users", victim)
        token = _token(master)

    def create(name: str, objects: list[dict[str, Any]]) -> list[str]:
        return create_all(lambda: _open(port, _MASTER), name, objects, connections=2)

    articles = create(VICTIM, [{"title": f"a title {n}", "views": n} for n in range(200)])
    create(CORPUS, [_text(number) for number in range(corpus)])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: _create_heavy(port), range(100)))
    return Scene(
        host=_HOST,
        port=port,
        application=_KEYS["APP_ID"],
        key=_KEYS["REST_API_KEY"],
        article=articles[0],
        file=_upload(port),
        username="victim",
        password=_PASSWORD,
        token=token,
    )


_FIELDS: dict[str, dict[str, Any]] = {
    VICTIM: {"title": {"type": "String"}, "views": {"type": "Number"}},
    CORPUS: {
        "text": {"type": "String"},
        "word": {"type": "String"},
        "number": {"type": "Number"},
        "tags": {"type": "Array"},
        "next": {"type": "Pointer", "targetClass": CORPUS},
    },
    HEAVY: {"text": {"type": "String"}},
    "Flooded": {"title": {"type": "String"}},
}


def _text(number: int) -> dict[str, Any]:
    """An object of the corpus: a text that patterns nearly match."""
    return {
        "text": "ae" * 100 + f" {number} " + "a" * 100 + "!",
        "word": f"word{number % 5_000}",
        "number": number,
        "tags": [f"word{number % 50}", f"word{number % 70}"],
    }


def _create_heavy(port: int) -> None:
    with _open(port, _MASTER) as master:
        master.send("POST", f"/classes/{HEAVY}", {"text": "abcdefgh" * 6_250})


def _token(master: Client) -> str:
    attacker = {"username": "attacker", "password": _PASSWORD}
    return str(master.send("POST", "/users", attacker)["sessionToken"])


def _upload(port: int) -> str:
    url = f"http://{_HOST}:{port}{MOUNT}/files/large.bin"
    headers = {**_MASTER, "Content-Type": "application/octet-stream"}
    answer = httpx.post(url, headers=headers, content=b"\0" * _FILE_SIZE, timeout=120)
    answer.raise_for_status()
    parts = urlsplit(answer.json()["url"])
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _open(port: int, headers: dict[str, str]) -> Client:
    return Client(port, MOUNT, headers)
