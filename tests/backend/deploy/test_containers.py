"""What the Dockerfile and the compose files say, as their tools read it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from docker.utils.build import exclude_paths

from backend.operations.embedded.binaries import POSTGRES_MAJOR
from backend.serve import ROLES
from tests.backend.deploy.layouts import KEYS, compose, redis_of
from tests.other_process import ROOT
from tests.polling import until
from tests.ports import free_port

PATIENCE = 30


def setting(name: str, environment: Mapping[str, str]) -> str:
    """A value of the settings that a process gets from this environment."""
    code = (
        "import django; from django.conf import settings; django.setup();"
        "database = settings.DATABASES['default'];"
        f"print({name})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "backend.settings.django",
            "ENV_FILE": os.devnull,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_dockerfile_is_clean() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "Dockerfile"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_images_are_pinned_by_digest_and_postgresql_is_of_the_wheel_s_major() -> None:
    bases = set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    services = compose({})
    engines = {services[name]["image"] for name in ("postgres", "redis")}
    assert len(bases) == 1
    for image in bases | engines:
        assert re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image
    assert services["postgres"]["image"].startswith(f"postgres:{POSTGRES_MAJOR}.")


@pytest.mark.slow
def test_every_role_is_a_service() -> None:
    services = compose({})
    assert set(services) == {*ROLES, "postgres", "redis", "migrate", "caddy"}
    for role in ROLES:
        assert services[role]["environment"]["PROCESS"] == role


@pytest.mark.slow
def test_the_page_mounts_code_into_every_service_that_runs_it() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text()
    [override] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    services = yaml.safe_load(override)["services"]
    built = {name for name, parts in compose({}).items() if parts.get("build") == "."}
    assert set(services) == built - {"caddy"}
    for parts in services.values():
        assert parts == {"volumes": ["./shop:/app/shop:ro"]}


@pytest.mark.slow
def test_the_port_is_part_of_the_public_address() -> None:
    web = compose(KEYS | {"PORT": "9000"})["web"]
    assert web["ports"] == ["9000:8000"]
    environment = web["environment"] | {"DATA_DIR": "/nowhere"}
    assert setting("settings.PUBLIC_URL", environment) == "http://localhost:9000"


@pytest.mark.slow
def test_an_address_of_the_site_alone_starts_caddy_and_closes_the_plain_port() -> None:
    site = "https://api.example.org"
    without, services = compose(KEYS), compose(KEYS | {"SITE_ADDRESS": site})
    assert int(without["caddy"]["deploy"]["replicas"]) == 0
    assert int(services["caddy"]["deploy"]["replicas"]) == 1
    assert without["web"]["ports"] == ["8000:8000"]
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]
    assert services["caddy"]["environment"]["SITE_ADDRESS"] == site
    environment = services["web"]["environment"]
    assert setting("settings.PUBLIC_URL", environment) == site
    address = services["caddy"]["networks"]["default"]["ipv4_address"]
    assert environment["TRUSTED_PROXIES"] == address


def test_caddy_is_healthy_when_it_listens_at_its_address() -> None:
    def probe(site: str) -> int:
        done = subprocess.run(
            [sys.executable, "-m", "backend.probe"],
            cwd=ROOT,
            env={"PROCESS": "caddy", "SITE_ADDRESS": site},
            check=False,
        )
        return done.returncode

    port = free_port()
    sites = f"http://localhost:{port}, https://files.example.org"
    assert probe(sites) == 1
    with socket.create_server(("127.0.0.1", port)):
        assert probe(sites) == 0
        assert probe(f"localhost:{port}") == 0


@pytest.mark.slow
def test_passwords_of_any_characters_reach_the_settings() -> None:
    value = KEYS | {"POSTGRES_PASSWORD": "p@ss/w:rd%", "REDIS_PASSWORD": 'r@"/\\'}
    environment = compose(value)["worker"]["environment"]
    database = setting("database['PASSWORD'], database['HOST']", environment)
    assert database == "p@ss/w:rd% postgres"
    assert setting("settings.REDIS_URL", environment).endswith("@redis:6379/0")


@pytest.mark.slow
def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    services = compose({}, "compose.secrets.yaml")
    names = services["web"]["secrets"]
    values = {name: f"{name} p@ss/\\" for name in names}
    for name, value in values.items():
        (tmp_path / name).write_text(f"{value}\n")
    environment = {
        name: value.replace("/run/secrets", str(tmp_path))
        for name, value in services["web"]["environment"].items()
    }
    assert setting("settings.SECRET_KEY", environment) == values["secret_key"]
    password = values["postgres_password"]
    assert setting("database['PASSWORD']", environment) == password
    for role in (*ROLES, "migrate"):
        assert services[role]["secrets"] == names
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"].endswith(
        "/postgres_password"
    )


@pytest.mark.slow
@pytest.mark.parametrize("password", ["", "p@ss/w\"o'r\\d $x `y`"])
@pytest.mark.parametrize("is_in_file", [False, True])
def test_redis_starts_with_the_password_and_is_healthy(
    tmp_path: Path, password: str, is_in_file: bool
) -> None:
    secret = tmp_path / "password"
    secret.write_text(password)
    value = {"REDIS_PASSWORD_FILE": str(secret)} if is_in_file else {"REDIS_PASSWORD": password}
    service = compose(value)["redis"]
    check = [part.replace("$$", "$") for part in service["healthcheck"]["test"][1:]]
    with redis_of(service, free_port()) as environment:
        until(lambda: not subprocess.call(check, env=environment), PATIENCE)
        wrong = environment | {"REDIS_PASSWORD": "wrong", "REDIS_PASSWORD_FILE": ""}
        assert not password or subprocess.call(check, env=wrong) == 1


def test_only_the_service_and_your_own_code_get_into_the_image(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    own = ["cloud.py", "cloud/orders.py", "cloud/mails/paid.html"]
    private = [".env", ".data/keys.env", "secrets/master_key", "shop.sqlite", "cloud/.env", "a.pem"]
    for name in (*listed, *own, *private):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in patterns if line and not line.startswith("#")]
    context = {name for name in exclude_paths(tmp_path, rules) if (tmp_path / name).is_file()}
    assert set(own) <= context
    assert not context & set(private)
    packages = ("backend/", "objects/", "functions/", "chain/", "realtime/")
    needed = {name for name in listed if name.startswith(packages)}
    needed |= {name for name in listed if re.fullmatch(r"docs/([^/]+|images/.+)", name)}
    remaining = {
        "manage.py",
        "requirements.txt",
        "Caddyfile",
        "script/manage",
        "script/environment",
    }
    # The client sends these two in any case; they aren't copied.
    assert context - {"Dockerfile", ".dockerignore"} == needed | remaining | set(own)
