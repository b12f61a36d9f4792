"""The console: requests to the API from a page, with the rights of a chosen caller."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects.admin.console import plans
from objects.staff.models import ConsoleEntry
from tests.chromium import NEEDS_CHROMIUM
from tests.npm import node_with_packages
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.games import make, make_class
from tests.objects.admin.staff import logged_in, staff_user
from tests.people import sign_up
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db

CONSOLE = "/admin/console/"
WORDS = "/admin/console-words/"
ROOT = Path(__file__).resolve().parents[3]
BUNDLE = ROOT / "backend/static/backend/vendor/codemirror/codemirror.js"


@pytest.fixture
def games(db: None) -> None:
    make_class()
    for number in range(3):
        make(title=f"game {number}", score=number)


@pytest.fixture
def staff(games: None) -> Client:
    return logged_in(ADMINISTRATORS)


def find(client: Client, **fields: Any) -> Any:
    return client.post(f"{CONSOLE}find/", {"caller": "master", "class_name": "Game", **fields})


def send(client: Client, method: str, path: str, body: str = "", **fields: Any) -> Any:
    form = {"caller": "master", "method": method, "path": path, "body": body, **fields}
    return client.post(f"{CONSOLE}request/", form)


@pytest.mark.parametrize(
    ("client", "status"),
    [
        (lambda: logged_in(None), 200),
        (lambda: logged_in(ADMINISTRATORS), 200),
        (lambda: logged_in(EDITORS), 403),
        (lambda: logged_in(VIEWERS), 403),
        (lambda: Client(), 302),
    ],
)
def test_administrators_alone_have_a_console(games, client, status):
    caller = client()
    for path in (CONSOLE, f"{CONSOLE}aggregate/", f"{CONSOLE}request/"):
        assert caller.get(path).status_code == status
    assert send(caller, "POST", "/classes/Game", "{}").status_code == status
    assert (ConsoleEntry.objects.count() == 1) is (status == 200)
    assert caller.get(WORDS).status_code == (403 if status == 302 else status)


def test_a_form_without_its_token_is_refused(games):
    client = Client(enforce_csrf_checks=True)
    client.force_login(staff_user(None))
    assert send(client, "DELETE", "/schemas/Game").status_code == 403


def test_a_find_shows_objects_and_the_same_request_with_curl(staff):
    page = find(staff, where='{"score": {"$gte": 1}}', order="-score", limit=10, count="on")
    assert page.context["total"] == 2
    assert page.context["count"] == 2
    titles = [
        row[page.context["table"].columns.index("title")] for row in page.context["table"].rows
    ]
    assert [cell.text for cell in titles] == ["game 2", "game 1"]
    assert '--data-urlencode \'where={"score": {"$gte": 1}}\'' in page.context["curl"]
    assert "test-master-key" not in page.content.decode()


def test_a_request_has_the_rights_of_its_caller(staff):
    make_class("Note")
    ann = sign_up("ann")
    own = ann.post("/classes/Note", {"ACL": {ann.user_id: {"read": True}}}).json["objectId"]
    path = f"/classes/Note/{own}"
    assert send(staff, "GET", path).context["outcome"].status == 200
    assert send(staff, "GET", path, caller="user", user="ann").context["outcome"].status == 200
    assert send(staff, "GET", path, caller="public").context["outcome"].status == 404
    bob = sign_up("bob")
    by_bob = send(staff, "GET", path, caller="user", user=bob.user_id)
    assert by_bob.context["outcome"].status == 404
    unknown = send(staff, "GET", path, caller="user", user="stranger")
    assert unknown.status_code == 400
    assert "There is no such user." in unknown.content.decode()


def test_a_user_can_do_no_more_than_over_rest(staff):
    sign_up("ann")
    outcome = send(staff, "GET", "/schemas", caller="user", user="ann").context["outcome"]
    assert (outcome.status, outcome.error.code) == (403, 119)


def test_a_pipeline_returns_its_documents(staff):
    form = {
        "caller": "master",
        "class_name": "Game",
        "pipeline": '[{"$group": {"_id": null, "most": {"$max": "$score"}}}]',
    }
    page = staff.post(f"{CONSOLE}aggregate/", form)
    assert page.context["outcome"].value == {"results": [{"objectId": None, "most": 2}]}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/classes/Game", '{"title": "new"}', 201),
        ("POST", "/api/classes/Game", "", 201),
        ("GET", "classes/Game?limit=1", "", 200),
        ("GET", '/classes/Game?where={"score":1}', "", 200),
        ("GET", "/nowhere", "", 404),
        ("GET", "/classes/../../admin", "", 404),
        ("GET", "/classes/%00", "", 400),
        ("DELETE", "/classes/Game/none", "", 404),
        ("PUT", "/health", "", 404),
        ("POST", "/batch", '{"requests": [{"method": "POST", "path": "/api/classes/Game"}]}', 200),
    ],
)
def test_any_request_can_be_sent(staff, method, path, body, status):
    assert send(staff, method, path, body).context["outcome"].status == status


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [
        ("find", {"class_name": ""}, "This field is required."),
        ("find", {"class_name": "Game", "where": "{"}, "not valid JSON"),
        ("find", {"class_name": "Game", "where": "[]"}, "has to be like"),
        ("find", {"class_name": "Game", "where": "[" * 100_000}, "nested too deeply"),
        ("find", {"class_name": "Game", "limit": "many"}, "Enter a whole number."),
        ("aggregate", {"class_name": "Game", "pipeline": "{}"}, "has to be like"),
        ("request", {"method": "GET", "path": "/config", "body": "[1]"}, "has to be like"),
        ("request", {"method": "GET", "path": "/a\x00b"}, "Null characters are not allowed."),
    ],
)
def test_what_cannot_be_sent_is_marked(staff, kind, fields, error):
    page = staff.post(f"{CONSOLE}{kind}/", {"caller": "master", **fields})
    assert page.status_code == 400
    assert error in page.content.decode()
    assert not ConsoleEntry.objects.exists()


def test_an_error_of_the_api_is_shown(staff):
    page = find(staff, where='{"score": {"$near": 1}}')
    assert page.context["outcome"].status == 400
    assert page.context["outcome"].error.message in page.context["outcome"].text


def test_a_plan_says_by_what_it_reads(staff):
    page = find(staff, where='{"objectId": "abc"}', explain="on")
    assert page.context["plan"].indexes
    assert not page.context["plan"].reads_everything


def test_any_plan_is_read_without_an_error():
    deep: dict[str, Any] = {"Node Type": "Seq Scan", "Plans": []}
    for _ in range(10_000):
        deep = {"Node Type": "Sort", "Plans": [deep]}
    plan = plans.plan_of({"results": [{"QUERY PLAN": [{"Plan": deep}]}]})
    assert plan is not None
    assert len(plan.steps) < 100
    for other in ({}, {"results": []}, {"results": [{"QUERY PLAN": []}]}, {"results": {"a": 1}}):
        assert plans.plan_of(other) is None


def test_what_was_run_is_listed_once_without_secrets_for_its_user_alone(staff):
    for _ in range(2):
        send(staff, "POST", "/users", '{"username": "eve", "password": "hunter22"}')
    find(staff)
    (entry, made) = ConsoleEntry.objects.order_by("-id")
    assert "hunter22" not in json.dumps(made.fields)
    again = staff.get(f"{CONSOLE}request/?entry={made.pk}")
    assert again.context["form"]["path"].value() == "/users"
    other = logged_in(None)
    assert other.get(CONSOLE).context["entries"] == []
    theirs = other.get(f"{CONSOLE}find/?entry={entry.pk}")
    assert theirs.context["form"]["class_name"].value() is None
    for odd in ("0", "9" * 30, "-1", "x"):
        assert staff.get(f"{CONSOLE}find/?entry={odd}").status_code == 200


def test_the_history_has_a_bound(staff):
    user = User.objects.get()
    ConsoleEntry.objects.bulk_create(
        ConsoleEntry(user=user, kind="find", fields={"class_name": str(n)}, status=200, ms=1)
        for n in range(80)
    )
    find(staff)
    assert ConsoleEntry.objects.count() == 50
    find(staff, where=json.dumps({"title": "a" * 30_000}))
    assert ConsoleEntry.objects.count() == 50


def test_the_words_of_a_class_are_its_fields_and_what_the_language_has(staff):
    words = staff.get(WORDS, {"class_name": "Game"}).json()
    assert {"name": "player", "detail": "Pointer<_User>", "info": ""} in words["fields_of_class"]
    assert {"$gt", "$inQuery"} <= {word["name"] for word in words["operators"]}
    assert "$or" in {word["name"] for word in words["clauses"]}
    assert "$group" in {word["name"] for word in words["stages"]}
    assert "$sum" in {word["name"] for word in words["accumulators"]}
    nowhere = staff.get(WORDS, {"class_name": "no class\x00"}).json()
    assert nowhere["fields_of_class"][0]["name"] == "objectId"


def test_a_hostile_response_is_text(staff):
    make(title="<script>alert(1)</script>")
    page = find(staff).content.decode()
    assert "<script>alert(1)" not in page


# -- SQL ----------------------------------------------------------------------------------------


def query(client: Client, statement: str) -> Any:
    return client.post(f"{CONSOLE}sql/", {"statement": statement})


@pytest.fixture
def root(transactional_db: None, games: None, settings: Any) -> Client:
    """A superuser, with objects that another connection sees, and a role for it."""
    settings.EMBEDDED_POSTGRES = True
    return logged_in(None)


def test_sql_is_for_superusers(staff, root):
    assert query(staff, "SELECT 1").status_code == 403
    assert staff.get(f"{CONSOLE}sql/").status_code == 403
    assert staff.get("/admin/console-tables/").status_code == 403
    assert "SQL" not in [title for title, _, _ in staff.get(CONSOLE).context["tabs"]]
    assert query(root, "SELECT 1").status_code == 200


_QUERIES: list[tuple[str, tuple[str, ...], int]] = [
    ('SELECT title, score FROM "Game" ORDER BY score DESC', ("title", "score"), 3),
    ("SELECT count(*) AS n, max(score) FROM Game;", ("n", "max"), 1),
    ("WITH best AS (SELECT * FROM game) SELECT title FROM best -- all", ("title",), 3),
    ("SELECT * FROM game WHERE score > 100", (), 0),
    ('SELECT username FROM "_User"', (), 0),
    ("SELECT '100%' AS share", ("share",), 1),
    ("SELECT generate_series(1, 5000) AS n", ("n",), 1000),
]


def test_classes_are_tables(root):
    for statement, columns, count in _QUERIES:
        result = query(root, statement).context["rows"]
        assert (result.columns, len(result.rows)) == (columns, count), statement
        assert result.is_cut is (count == 1000)


def test_fields_are_columns_of_their_types(root):
    user = sign_up("ann")
    make(
        title="all",
        won=True,
        playedAt={"__type": "Date", "iso": "2026-01-31T12:00:00.000Z"},
        player=user.pointer,
        tags=["a", "b"],
        details={"level": 3},
        place={"__type": "GeoPoint", "latitude": 1, "longitude": 2},
    )
    statement = (
        'SELECT won AND true AS won, extract(year FROM "playedAt") AS year,'
        " u.username, tags->>0 AS tag,"
        " (details->>'level')::int + 1 AS level FROM \"Game\" g"
        ' JOIN "_User" u ON u."objectId" = g.player'
    )
    assert query(root, statement).context["rows"].rows == ((True, 2026, "ann", "a", 4),)
    everything = query(root, 'SELECT * FROM "Game"').context["rows"]
    tables = root.get("/admin/console-tables/").json()["tables"]
    (columns,) = (table["columns"] for table in tables if table["name"] == "Game")
    assert everything.columns == tuple(columns)


_HOSTILE = [
    "DELETE FROM objects_class",
    "SELECT 1) q; DROP TABLE objects_class; --",
    "SELECT 1; SELECT 2",
    "COMMIT",
    "WITH gone AS (DELETE FROM objects_class RETURNING 1) SELECT * FROM gone",
    "SELECT * FROM objects_password",
    "SELECT * FROM objects_session",
    "SELECT auth_data FROM objects_user",
    "SELECT read_acl FROM objects_object",
    "SELECT * FROM auth_user",
    'SELECT token_hash FROM "_Session"',
    "SELECT set_config('role', 'backend', false), (SELECT count(*) FROM auth_user)",
    "SELECT set_config('session_authorization', 'backend', false)",
    "SELECT set_config('transaction_read_only', 'off', false), nextval('objects_class_id_seq')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT lo_create(0)",
    'SELECT * INTO copied FROM "Game"',
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "EXPLAIN SELECT 1",
    "SELECT repeat('a', 30000)",
    "SELECT (",
    "",
    "(" * 50_000,
    "SELECT '" + "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
]


def test_sql_reads_classes_and_nothing_else(root):
    for statement in _HOSTILE:
        page = query(root, statement)
        assert page.context.get("rows") is None, statement
        assert page.context.get("refusal") or page.context["form"].errors, statement
    assert Api(MASTER).get("/classes/Game", count=1, limit=0).json["count"] == 3


@pytest.mark.slow
def test_a_query_has_its_time(root):
    page = query(root, "SELECT pg_sleep('infinity')")
    assert page.context["refusal"].message == "It took longer than 10 seconds."


def test_an_error_of_sql_names_its_line(root):
    page = query(root, 'SELECT title,\n  scoer FROM "Game"')
    assert page.context["refusal"].message.startswith('Line 2, column 3: column "scoer" does not')
    history = ConsoleEntry.objects.get()
    assert history.kind == "sql"
    assert history.status == 400


def test_without_a_role_it_says_how_to_make_one(root, settings):
    settings.EMBEDDED_POSTGRES = False
    assert "CREATE ROLE console_reader" in root.get(f"{CONSOLE}sql/").content.decode()


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_a_query_is_completed_run_and_explained(
    chromium, transactional_db, live_server, games, settings
):
    settings.EMBEDDED_POSTGRES = True
    wide = {"width": 1400, "height": 900}
    with staff_page(chromium, live_server.url, staff_user(ADMINISTRATORS), viewport=wide) as page:
        page.goto(CONSOLE)
        page.get_by_label("Class").fill("Game")
        editor = page.get_by_role("textbox", name="Where")
        editor.click()
        page.keyboard.type("{sco")
        expect(page.get_by_role("option", name="score")).to_be_visible()
        look(page, "console_completion")
        page.get_by_role("option", name="score").click()
        page.keyboard.type("{$gt")
        expect(page.get_by_role("option", name="$gt", exact=False).first).to_be_visible()
        look(page, "console_operators")
        page.get_by_role("option", name="$gt", exact=False).first.click()
        page.keyboard.type("0")
        expect(editor).to_have_text('{"score": {"$gt": 0}}')
        page.keyboard.press("Control+Enter")
        response = page.get_by_label("The response")
        expect(response).to_contain_text("2 objects")
        expect(page.get_by_role("region", name="Objects")).to_contain_text("game 2")
        look(page, "console_found")
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_text("It reads every object of a class.")).to_be_visible()
        look(page, "console_plan")
        page.get_by_role("link", name='Game {"score"').last.click()
        expect(page.get_by_role("textbox", name="Where")).to_have_text('{"score": {"$gt": 0}}')
        _aggregate(page)
        _sql(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": 390, "height": 844})
            page.goto(f"{CONSOLE}request/?method=GET&path=/classes/Game")
            page.get_by_role("button", name="Send").click()
            expect(page.get_by_label("The response")).to_contain_text("Done")
            look(page, f"console_narrow_{scheme}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390


def _aggregate(page: Page) -> None:
    page.goto(f"{CONSOLE}aggregate/?class_name=Game")
    page.get_by_role("textbox", name="Pipeline").click()
    page.keyboard.type("[{$gro")
    page.get_by_role("option", name="$group").click()
    page.keyboard.type("{_id")
    page.get_by_role("option", name="_id").click()
    page.keyboard.type("$sc")
    page.get_by_role("option", name="$score").click()
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Aggregate").click()
    expect(page.get_by_label("The response")).to_contain_text("3 objects")
    look(page, "console_aggregate")


def _sql(page: Page) -> None:
    User.objects.update(is_superuser=True)
    page.goto(f"{CONSOLE}sql/")
    page.get_by_role("textbox", name="Query").click()
    page.keyboard.type("select title, score fro")
    page.keyboard.press("Escape")
    page.keyboard.type("m Ga")
    look(page, "console_sql")
    page.get_by_role("option", name="Game").click()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("The response")).to_contain_text("3 rows")
    look(page, "console_sql_rows")


def test_the_editor_is_the_file_that_its_origin_names():
    origin = json.loads((BUNDLE.parent / "origin.json").read_text())
    assert origin["files"]["codemirror.js"] == hashlib.sha256(BUNDLE.read_bytes()).hexdigest()


@pytest.mark.slow
def test_the_editor_is_what_its_packages_build(tmp_path):
    folder = ROOT / "tests/objects/admin/editor"
    node_with_packages(folder)
    options = ["--bundle", "--format=esm", "--minify", "--legal-comments=none"]
    command = ["node_modules/.bin/esbuild", "entry.js", *options]
    subprocess.run([*command, f"--outfile={tmp_path / 'built.js'}"], cwd=folder, check=True)
    assert (tmp_path / "built.js").read_bytes() == BUNDLE.read_bytes()
