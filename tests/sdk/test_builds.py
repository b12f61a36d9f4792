"""The builds of the official JavaScript SDK for Node, React Native and browsers work alike here."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.chromium import NEEDS_CHROMIUM
from tests.other_process import OtherProcess, other_process
from tests.sdk.applications import FOLDER, KEYS, outcomes_of
from tests.sdk.realtime import Realtime

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("emptied"),
    pytest.mark.xdist_group("sdk"),
]
CHECKS = re.findall(r"^      async '(.+)'\(", (FOLDER / "builds.js").read_text(), re.MULTILINE)


class _Page(BaseHTTPRequestHandler):
    """A page of another origin than the service, also on this machine: Chromium lets no page of
    another network call addresses of this one."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html>")

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def service(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[OtherProcess, str]]:
    """A web process that lets clients create classes and upload, and the address of sockets."""
    with (
        django_db_blocker.unblock(),
        other_process(
            ALLOW_CLIENT_CLASS_CREATION="on", FILE_UPLOAD_PUBLIC="on", ENFORCE_PRIVATE_USERS="off"
        ) as web,
    ):
        realtime = Realtime(web)
        yield web, realtime.url
        realtime.stop()


@pytest.mark.slow
@pytest.mark.parametrize("build", ["node", "react-native"])
def test_a_build_runs_in_node(build, node, service):
    web, sockets = service
    outcomes = outcomes_of(node, "run_build.js", build, web.url, sockets, *KEYS[:2])
    assert [name for name, _ in outcomes] == CHECKS
    assert [(name, error) for name, error in outcomes if error] == []


@NEEDS_CHROMIUM
@pytest.mark.parametrize("script", ["parse.js", "parse.min.js"])
def test_the_browser_build_runs_on_a_page_of_another_origin(
    script, node, service, address, chromium: Browser
):
    web, sockets = service
    context = chromium.new_context()
    page = context.new_page()
    page.goto(address)
    page.add_script_tag(path=FOLDER / "node_modules" / "parse" / "dist" / script)
    page.add_script_tag(path=FOLDER / "builds.js")
    outcomes = page.evaluate(
        "options => runBuild(Parse, options)",
        {
            "serverURL": web.url,
            "liveQueryURL": sockets,
            "applicationId": KEYS[0],
            "javascriptKey": KEYS[1],
        },
    )
    context.close()
    assert [outcome["name"] for outcome in outcomes] == CHECKS
    assert [outcome for outcome in outcomes if outcome["error"]] == []
