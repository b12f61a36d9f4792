"""A Caddy in front of a web process, with TLS and HTTP/2, as ``SITE_ADDRESS`` starts it."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.operations.embedded.binaries import caddy
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE = 60.0


@contextmanager
def tls_proxy(folder: Path, web_port: int) -> Iterator[int]:
    """Start it; the port of ``https://localhost``."""
    port, plain_port = free_port(), free_port()
    # Caddy's port for redirects is one for the whole machine.
    config = (ROOT / "Caddyfile").read_text().replace("{\n", f"{{\n\thttp_port {plain_port}\n", 1)
    (folder / "Caddyfile").write_text(config)
    environment = {
        **os.environ,
        "SITE_ADDRESS": f"https://localhost:{port}",
        "LISTEN_HOST": "127.0.0.1",
        "WEB_UPSTREAM": f"127.0.0.1:{web_port}",
        "REALTIME_UPSTREAM": f"127.0.0.1:{free_port()}",
        "CADDY_STORAGE": str(folder / "caddy"),
        "XDG_DATA_HOME": str(folder),
        "HOME": str(folder),
    }
    command = [str(caddy()), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            _wait_for(process, port, folder / "caddy.log")
            yield port
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def insecure() -> ssl.SSLContext:
    """TLS without a check of certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            # The port is open before there is a certificate.
            with socket.create_connection(("127.0.0.1", port), 5) as plain:
                insecure().wrap_socket(plain, server_hostname="localhost").close()
            return
        except OSError:
            caddy_is_starting = 0.05
            time.sleep(caddy_is_starting)
    raise AssertionError(log.read_text())
