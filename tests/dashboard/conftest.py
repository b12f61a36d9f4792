"""Parse Dashboard, installed once, in headless Chromium against a running service."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.callers import emptied, fresh_registry
from tests.chromium import CHROMIUM
from tests.npm import NodeMissing, NpmFailed, node_with_packages
from tests.other_process import OtherProcess, other_process
from tests.ports import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.dashboard.pages import Dashboard

__all__ = ["dashboard", "dashboard_url", "emptied", "fresh_registry", "served"]

FOLDER = Path(__file__).resolve().parent
APP = "Test"
_PATIENCE = 60  # seconds


@pytest.fixture(scope="session")
def dashboard_program() -> list[str]:
    """The command that starts Parse Dashboard, installed as the lock file says."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: Parse Dashboard needs a browser")
    try:
        node = node_with_packages(FOLDER, "--ignore-scripts")
    except NodeMissing as error:
        pytest.skip(f"Parse Dashboard: {error}")
    except NpmFailed as error:
        pytest.fail(str(error), pytrace=False)
    return [node, "node_modules/parse-dashboard/bin/parse-dashboard"]


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[OtherProcess]:
    """A web process that keeps its log, and the process that runs its jobs."""
    from tests.functions.jobs.processes import Processes

    with (
        django_db_blocker.unblock(),
        other_process(LOG_KEEP="1000", LOG_LEVEL="INFO") as web,
    ):
        processes = Processes("tests.cloud")
        processes.start("jobs")
        try:
            yield web
        finally:
            processes.stop()


@pytest.fixture(scope="module")
def dashboard_url(
    dashboard_program: list[str], served: OtherProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a running Parse Dashboard that shows the service."""
    port = free_port()
    config = tmp_path_factory.mktemp("dashboard") / "config.json"
    app = {
        "appName": APP,
        "appId": "test-app",
        "masterKey": "test-master-key",
        "serverURL": served.url,
    }
    config.write_text(json.dumps({"apps": [app | {"enableSecurityChecks": True}]}))
    process = subprocess.Popen(
        [*dashboard_program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
        cwd=FOLDER,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NODE_ENV": "production"},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(process, url)
        yield url
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"Parse Dashboard ended with status {process.returncode}.")
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)  # it is starting
    raise RuntimeError("Parse Dashboard doesn't answer.")


@pytest.fixture
def dashboard(chromium: Browser, dashboard_url: str, served: OtherProcess) -> Iterator[Dashboard]:
    """A page of Parse Dashboard. Failed requests and errors of the page fail the test."""
    from tests.dashboard.pages import Dashboard

    context = chromium.new_context(
        viewport={"width": 1600, "height": 1000}, service_workers="block"
    )
    # Fonts, which a machine without Internet doesn't get.
    context.route("https://fonts.googleapis.com/**", lambda route: route.fulfill(body=""))
    opened = Dashboard(context.new_page(), f"{dashboard_url}/apps/{APP}", served)
    try:
        yield opened
        opened.check()
    finally:
        context.close()
