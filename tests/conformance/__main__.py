"""Run Parse's published test suites against the service (docs/conformance.md)."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.backend.operations.service import Service
from tests.conformance.score import Score, table
from tests.npm import NpmFailed, node_with_packages

FOLDER: Final = Path(__file__).resolve().parent
_ADAPTERS: Final = "tests.conformance.sign_in_adapters"
_COMMON: Final = {
    "REST_API_KEY": "rest",
    "JAVASCRIPT_KEY": "test",
    "CLIENT_KEY": "client",
    "READ_ONLY_MASTER_KEY": "read-only-test",
    "MAINTENANCE_KEY": "testing",
    "WEBHOOK_KEY": "hook",
    "SECRET_KEY": "secret-of-the-suites-0123456789abcdef",
    "ALLOW_CLIENT_CLASS_CREATION": "on",
    "ALLOW_ANONYMOUS_USERS": "on",
    "ANONYMOUS_ID_LENGTH": "4",
    "FILE_URL_DOMAINS": "*",
    "FILE_UPLOAD_ANONYMOUS": "on",
    "FILE_UPLOAD_PUBLIC": "on",
    "WEBHOOK_ALLOW_PRIVATE": "127.0.0.0/8",
    "RATE_LIMITS": "off",
}


def _adapters(**names: str) -> str:
    adapters = {name: {"adapter": f"{_ADAPTERS}.{kind}"} for name, kind in names.items()}
    return json.dumps(adapters)


SETTINGS: Final[dict[str, dict[str, str]]] = {
    "spec": {
        **_COMMON,
        "APP_ID": "test",
        "MASTER_KEY": "test",
        "MOUNT_PATH": "/1",
        "PUBLIC_URL": "http://localhost:8378",
        "AUTH_ADAPTERS": _adapters(
            custom="Custom", facebook="Facebook", myoauth="MyOauth", shortLivedAuth="Never"
        ),
    },
    "sdk": {
        **_COMMON,
        "APP_ID": "integration",
        "MASTER_KEY": "notsosecret",
        "MOUNT_PATH": "/parse",
        "PUBLIC_URL": "http://localhost:1337",
        "REVOKE_SESSIONS_ON_PASSWORD_CHANGE": "off",
        "IDEMPOTENCY_MODE": "reject",
        "AUTH_ADAPTERS": _adapters(facebook="Anyone", myAuth="Anyone", twitter="Anyone"),
    },
}
_OPTIONS: Final = {
    "spec": [],
    "sdk": [
        *("--sdk-app", "integration", "--sdk-master", "notsosecret"),
        *("--sdk-inject-js", "test"),
    ],
}


def main(arguments: list[str] | None = None) -> int:
    """Run the suites, print the score per file, and return the exit status."""
    options = _parser().parse_args(arguments)
    modules = _installed_modules()
    score = Score()
    for suite in [options.suite] if options.suite else ["spec", "sdk"]:
        files = _run(suite, options, modules)
        if options.results:
            options.results.mkdir(parents=True, exist_ok=True)
            (options.results / f"{suite}.json").write_text(json.dumps({"files": files}, indent=1))
        for line in table(files, score):
            print(line, flush=True)
    print(f"{score.passed} of {score.total} tests = {score.share:.2%}, least {options.least:.0%}")
    return 0 if score.share >= options.least else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="script/conformance", description=__doc__)
    parser.add_argument("parse_server", type=Path, help="checkout or bare clone of parse-server")
    parser.add_argument("parse_sdk", type=Path, help="checkout or bare clone of Parse-SDK-JS")
    parser.add_argument("--suite", choices=("spec", "sdk"), help="run one of the two suites")
    parser.add_argument("--only", metavar="FILE,…", help="run some files")
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="store each test's result and message here"
    )
    parser.add_argument(
        "--least", type=float, default=0.9, help="share that has to pass (default: %(default)s)"
    )
    return parser


def _installed_modules() -> Path:
    try:
        node_with_packages(FOLDER, "--ignore-scripts")
    except NpmFailed as error:
        sys.exit(f"The suites: {error}")
    return FOLDER / "node_modules"


def _run(suite: str, options: argparse.Namespace, modules: Path) -> list[dict[str, Any]]:
    """Return the results of a suite's files against an instance that lives as long as it runs."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        Path(folder).chmod(0o711)  # root's engines run under another account
        results = Path(folder) / "results.json"
        service = Service(Path(folder) / "data", **SETTINGS[suite])
        try:
            command = [
                *("node", str(FOLDER / "run.js"), "--suite", suite, "--modules", str(modules)),
                *("--url", service.url + SETTINGS[suite]["MOUNT_PATH"], "--out", str(results)),
                *_OPTIONS[suite],
                *(("--only", options.only) if options.only else ()),
            ]
            repositories = {
                "PARSE_SERVER_REPO": str(options.parse_server.resolve()),
                "PARSE_SDK_REPO": str(options.parse_sdk.resolve()),
            }
            subprocess.run(
                command, env=os.environ | repositories, stdout=subprocess.DEVNULL, check=False
            )
        finally:
            service.stop()
        if not results.exists():
            sys.exit(f"The suite {suite} gave no results.")
        files: list[dict[str, Any]] = json.loads(results.read_text())["files"]
        return files


if __name__ == "__main__":
    sys.exit(main())
