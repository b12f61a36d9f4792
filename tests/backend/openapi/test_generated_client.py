"""A client that openapi-python-client makes from the document works against the service."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from functions import Request, function
from functions.runtime.registry import registry
from tests.backend.openapi.document import document
from tests.people import PASSWORD, sign_up
from tests.rest import CLIENT, MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("emptied")]

PACKAGE = "generated_api_client"
SCRIPTS = Path(sys.executable).parent
FIELDS = {
    "name": {"type": "String", "required": True},
    "stars": {"type": "Number"},
    "day": {"type": "Date"},
    "tags": {"type": "Array"},
    "owner": {"type": "Pointer", "targetClass": "_User"},
}


@pytest.fixture
def world(settings: Any, live_server: Any) -> Iterator[None]:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    assert Api(MASTER).post("/schemas/Project", {"fields": FIELDS}).status == 200
    with registry.temporarily():

        @function()
        def add_up(request: Request, left: int, right: int = 1) -> int:
            """Add two numbers."""
            return left + right

        yield


@pytest.fixture
def generated(world: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package, made from the document of a client and imported."""
    description = tmp_path / "openapi.json"
    description.write_text(json.dumps(document(Api(CLIENT))))
    done = subprocess.run(
        [
            *(SCRIPTS / "openapi-python-client", "generate", "--meta", "none"),
            *("--path", description, "--output-path", tmp_path / PACKAGE),
        ],
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module(PACKAGE)
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.slow
def test_a_generated_client_is_used(generated: Any, live_server: Any) -> None:
    def api(tag: str, operation: str) -> Any:
        return importlib.import_module(f"{PACKAGE}.api.{tag}.{operation}")

    models = importlib.import_module(f"{PACKAGE}.models")
    ann = sign_up("ann", ACL={"*": {"read": True}})
    with generated.Client(base_url=f"{live_server.url}/api", headers=ann.headers) as client:
        # Create
        owner = models.UserPointer(class_name="_User", object_id=ann.user_id)
        day = models.DateValue(iso=datetime.fromisoformat("2020-01-31T12:00:00.000+00:00"))
        new = models.ProjectCreate(name="first", stars=1, owner=owner, day=day, tags=["a"])
        created = api("project", "create_project").sync(client=client, body=new)
        assert isinstance(created, models.CreatedAnswer)
        object_id = created.object_id

        # Get
        get = api("project", "get_project")
        game = get.sync(object_id, client=client)
        assert isinstance(game, models.Project)
        assert (game.name, game.stars, game.owner) == ("first", 1, owner)
        assert game.day == day
        with_owner = get.sync(object_id, client=client, include="owner")
        assert isinstance(with_owner.owner, models.User)
        assert with_owner.owner.username == "ann"

        # Find
        find = api("project", "find_project")
        page = find.sync(client=client, where=json.dumps({"stars": {"$gte": 1}}), count=True)
        assert isinstance(page, models.ProjectResults)
        assert ([result.object_id for result in page.results], page.count) == ([object_id], 1)
        assert find.sync(client=client, where=json.dumps({"stars": 5})).results == []

        # Update, by a value and by an operator
        change = models.ProjectUpdate(
            name="second", stars=models.IncrementOperator(amount=2), day=models.DeleteOperator()
        )
        updated = api("project", "update_project").sync(object_id, client=client, body=change)
        assert isinstance(updated, models.UpdatedAnswer)
        assert updated["stars"] == 3
        game = get.sync(object_id, client=client)
        assert (game.name, game.stars) == ("second", 3)
        assert not game.day

        # A function
        add_up = api("functions", "call_add_up")
        answer = add_up.sync(client=client, body=models.CallAddUpBody(left=2, right=5))
        assert answer.result == 7

        # Delete, and errors
        deleted = api("project", "delete_project").sync(object_id, client=client)
        assert isinstance(deleted, models.EmptyAnswer)
        missing = get.sync_detailed(object_id, client=client)
        assert missing.status_code == 404
        assert missing.parsed == models.ErrorAnswer(code=101, error="Object not found.")
        refused = api("project", "create_project").sync(
            client=client, body=models.ProjectCreate(name=None)
        )
        assert isinstance(refused, models.ErrorAnswer)
        assert refused.code == 142


@pytest.mark.slow
def test_a_generated_client_signs_up_and_in(generated: Any, live_server: Any) -> None:
    models = importlib.import_module(f"{PACKAGE}.models")
    users = f"{PACKAGE}.api.users"
    with generated.Client(base_url=f"{live_server.url}/api", headers=CLIENT) as client:
        ben = models.UserCreate(username="ben", password=PASSWORD, email="ben@example.org")
        signed_up = importlib.import_module(f"{users}.add_user").sync(client=client, body=ben)
        assert isinstance(signed_up, models.SignedUpAnswer)
        form = models.PasswordForm(username="ben", password=PASSWORD)
        account = importlib.import_module(f"{users}.log_in").sync(client=client, body=form)
        assert isinstance(account, models.OwnUser)
        assert account.email == "ben@example.org"
        signed_in = client.with_headers({"X-Svc-Session-Token": account.session_token})
        me = importlib.import_module(f"{users}.current_user").sync(client=signed_in)
        assert me.object_id == signed_up.object_id
