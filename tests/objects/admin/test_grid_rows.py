"""The rows of the grid, its columns, and the page around it."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from backend.kernel.principal import MASTER as MASTER_KEY
from backend.site.staff import VIEWERS
from objects.files.names import new_stored_name
from objects.service import classes
from objects.staff.models import StaffGrid
from tests.objects.admin.games import (
    FIELDS,
    GAME,
    grid_rows,
    make,
    make_class,
    send,
    stored_object,
)
from tests.objects.admin.staff import logged_in
from tests.objects.files.uploads import stored
from tests.people import sign_up
from tests.rest import MASTER

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def shown_ids(response) -> list[str]:
    assert response.status_code == 200, response.json()
    return [row["id"] for row in response.json()["rows"]]


def cells(staff: Client, **params: str) -> dict[str, dict[str, str]]:
    """The cells of the first row."""
    return grid_rows(staff, **params).json()["rows"][0]["cells"]


def test_cells_are_shown_by_their_types(staff):
    ann = sign_up("ann")
    mine, other = stored("board.png"), stored("notes.txt")
    make(
        title="a long text " * 20,
        score=10**25,
        won=False,
        playedAt={"__type": "Date", "iso": "2024-05-04T10:30:00.250Z"},
        player=ann.pointer,
        picture={"__type": "File", "name": mine},
        place={"__type": "GeoPoint", "latitude": 48.2, "longitude": 16},
        tags=[other, 1],
        details={"a": None},
        key={"__type": "Bytes", "base64": "aGVsbG8="},
        area={"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1]]},
        ACL={"*": {"read": True}, "role:Judges": {"write": True}},
    )
    row = cells(staff, columns=",".join([*FIELDS, "ACL"]))
    assert row["title"]["text"].endswith("…")
    assert row["title"]["edit"] == "a long text " * 20
    assert row["score"]["text"] == "10000000000000000000000000"
    assert row["won"]["text"] == "false"
    assert row["playedAt"]["text"] == "2024-05-04 10:30:00"
    assert row["playedAt"]["edit"] == "2024-05-04T10:30:00.250Z"
    assert row["player"]["href"] == f"/admin/data/_User/o/{ann.user_id}/"
    assert (row["player"]["text"], row["player"]["edit"]) == ("ann", ann.user_id)
    assert row["picture"]["picture"] == f"/admin/file/{mine}"
    assert (row["place"]["text"], row["place"]["edit"]) == ("48.2°, 16°", "48.2, 16")
    assert row["details"]["text"] == '{"a":null}'
    assert row["key"]["edit"] == "aGVsbG8="
    assert row["area"]["text"] == "3 corners"
    assert row["fans"]["href"].endswith("/relation/fans/")
    assert row["ACL"]["text"] == "*: r, role:Judges: w"


def test_null_is_told_from_a_missing_value(staff):
    make(title=None)
    assert cells(staff, columns="title")["title"]["kind"] == "null"
    make()
    assert cells(staff, columns="title") == {}


def test_a_value_that_is_too_long_for_a_cell_has_no_text_to_edit(staff):
    make(title="x" * 10_001)
    assert cells(staff, columns="title")["title"]["isCut"] is True


def test_pointers_to_what_the_staff_user_may_not_see_are_shown_by_their_ids(staff):
    ann = sign_up("ann")
    make(player=ann.pointer)
    limited = Client()
    user = User.objects.create_user("limited", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_storedobject"))
    limited.force_login(user)
    assert cells(limited, columns="player")["player"]["text"] == ann.user_id
    assert cells(staff, columns="player")["player"]["text"] == "ann"


def test_a_file_that_isn_t_ours_is_no_picture_and_no_script(staff, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_DOMAINS": ("cdn.example.org",)}
    make(picture={"__type": "File", "name": "a.png", "url": "https://cdn.example.org/a.png"})
    picture = cells(staff, columns="picture")["picture"]
    assert picture["href"] == "https://cdn.example.org/a.png"
    assert "picture" not in picture


def columns(staff: Client) -> list[str]:
    return [column["name"] for column in grid_rows(staff).json()["columns"]]


def test_the_proposed_columns_have_the_name_first_and_long_texts_last(staff):
    make(title="a", score=1, won=True, tags=["a"], details={"note": "long " * 20})
    names = columns(staff)
    assert names[:3] == ["title", "score", "won"]
    assert names.index("tags") < names.index("player")  # which no object has
    assert names[-2:] == ["details", "updatedAt"]


def test_columns_their_order_and_width_are_stored_for_each_user_and_class(staff):
    make(title="seen", score=7)
    chosen = [{"name": "score", "width": 90}, {"name": "title", "width": 300}]
    layout = {"columns": chosen, "size": 200}
    assert send(staff, "PUT", f"{GAME}layout/", layout).status_code == 200
    response = grid_rows(staff).json()
    assert (response["columns"], response["size"]) == (chosen, 200)
    assert columns(logged_in(VIEWERS)) != ["score", "title"]
    assert send(staff, "DELETE", f"{GAME}layout/", {}).status_code == 200
    assert columns(staff)[0] == "title"


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"columns": [], "size": 100},
        {"columns": [{"name": "nothing", "width": 90}], "size": 100},
        {"columns": [{"name": "score", "width": 1}], "size": 100},
        {"columns": [{"name": "score", "width": 90}], "size": 7},
        {"columns": [{"name": "score", "width": 90}] * 201, "size": 100},
        {"columns": "score", "size": 100},
    ],
)
def test_a_layout_that_can_t_be_shown_is_refused(staff, layout):
    assert send(staff, "PUT", f"{GAME}layout/", layout).status_code == 400
    assert StaffGrid.objects.count() == 0


def test_a_column_is_shown_once(staff):
    chosen = [{"name": "score", "width": 90}] * 2
    send(staff, "PUT", f"{GAME}layout/", {"columns": chosen, "size": 100})
    assert columns(staff) == ["score"]


def test_columns_of_fields_that_were_deleted_are_left_out(staff):
    make(title="a", score=1)
    chosen = [{"name": "score", "width": 90}, {"name": "won", "width": 90}]
    send(staff, "PUT", f"{GAME}layout/", {"columns": chosen, "size": 100})
    classes.change(MASTER_KEY, "Game", {"fields": {"score": {"__op": "Delete"}}})
    assert columns(staff) == ["won"]


def test_the_layouts_of_a_staff_user_are_bounded(staff):
    user = User.objects.get(username="root")
    rows = [StaffGrid(user=user, class_name=f"C{number}", columns=[]) for number in range(220)]
    StaffGrid.objects.bulk_create(rows)
    chosen = [{"name": "score", "width": 90}]
    send(staff, "PUT", f"{GAME}layout/", {"columns": chosen, "size": 100})
    assert StaffGrid.objects.count() == 200
    assert columns(staff) == ["score"]


def test_the_newest_come_first_and_each_field_with_an_order_sorts(staff):
    ids = [make(score=score) for score in (2, 1, 3)]
    ages = {item: (stored_object(item)["createdAt"], item) for item in ids}
    assert shown_ids(grid_rows(staff)) == sorted(ids, key=ages.__getitem__, reverse=True)
    assert shown_ids(grid_rows(staff, order="score")) == [ids[1], ids[0], ids[2]]
    assert shown_ids(grid_rows(staff, order="-score")) == [ids[2], ids[0], ids[1]]


def test_pages_lead_on_and_back(staff):
    ids = [make(score=number) for number in range(120)]
    observed, params = [], {"order": "score", "size": "50"}
    page = grid_rows(staff, **params)
    while True:
        observed += shown_ids(page)
        if page.json()["after"] is None:
            break
        page = grid_rows(staff, after=page.json()["after"], **params)
    assert observed == ids
    page = grid_rows(staff, before=page.json()["before"], **params)
    assert shown_ids(page) == ids[50:100]


def test_a_filter_is_built_from_a_form(staff):
    low, high = make(score=1), make(score=9)
    answer = staff.get(GAME, {"add": "1", "field": "score", "operator": "gt", "value": "5"})
    assert answer.status_code == 302
    page = staff.get(answer.headers["Location"])
    assert "{&quot;score&quot;:{&quot;$gt&quot;:5}}" in page.text
    assert shown_ids(grid_rows(staff, where='{"score":{"$gt":5}}')) == [high]
    assert set(shown_ids(grid_rows(staff, where=""))) == {high, low}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("{", "where: "),
        ("[]", "where: expected an object"),
        ('{"score": {"$no": 1}}', "bad constraint: $no (where.score)"),
        ('{"a b": 1}', "Invalid key name: a b"),
        ('{"title": {"$regex": "("}}', "where.title.$regex"),
        ("[" * 100_000, "where: "),
    ],
)
def test_what_the_query_language_refuses_is_said_in_place(staff, where, message):
    make()
    page = staff.get(GAME, {"where": where})
    assert page.status_code == 400
    assert message in page.text
    assert message in grid_rows(staff, where=where).json()["error"]
    # What was written stays to be corrected.
    assert where[:50].replace('"', "&quot;") in page.text


@pytest.mark.parametrize(
    "params",
    [
        {"add": "1", "field": "score", "operator": "gt", "value": "x"},
        {"add": "1", "field": "<b>", "operator": "gt", "value": "1"},
        {"add": "1", "field": "score", "operator": "begins", "value": "1"},
    ],
)
def test_odd_parameters_are_refused_in_place(staff, params):
    page = staff.get(GAME, params)
    assert page.status_code == 400
    assert 'role="alert"' in page.text


@pytest.mark.parametrize(
    "params",
    [
        {"order": "tags"},
        {"order": "nothing"},
        {"after": "x"},
        {"before": "W10"},
        {"size": "1000000"},
        {"size": "x"},
        {"columns": "a b"},
        {"columns": "a," * 300},
    ],
)
def test_odd_parameters_of_rows_are_refused(staff, params):
    response = grid_rows(staff, **params)
    assert response.status_code == 400
    assert set(response.json()) == {"code", "error"}


def test_counting_is_done_when_requested(staff):
    for number in range(60):
        make(score=number)
    response = staff.get(f"{GAME}count/", {"where": '{"score": {"$gte": 5}}'})
    assert response.json() == {"count": 55}


def test_a_search_around_a_point_comes_by_distance(staff):
    ids = [
        make(place={"__type": "GeoPoint", "latitude": latitude, "longitude": 0})
        for latitude in (3, 1, 2)
    ]
    near = {"place": {"$nearSphere": {"__type": "GeoPoint", "latitude": 0, "longitude": 0}}}
    page = grid_rows(staff, where=json.dumps(near))
    assert shown_ids(page) == [ids[1], ids[2], ids[0]]
    assert page.json()["isByDistance"] is True


def test_operators_follow_the_type_of_the_field(staff):
    assert "begins with" in staff.get(f"{GAME}operators/", {"field": "title"}).text
    assert "begins with" not in staff.get(f"{GAME}operators/", {"field": "score"}).text
    assert staff.get(f"{GAME}operators/", {"field": "nothing"}).status_code == 400


def test_lookups_find_by_the_beginning_of_a_name_or_by_the_id(staff):
    ann, bob = sign_up("ann"), sign_up("b.b")
    path = "/admin/data/_User/lookup/"
    assert staff.get(path, {"of": "x", "x": "an"}).text.strip() == (
        f'<option value="{ann.user_id}">ann</option>'
    )
    assert bob.user_id in staff.get(path, {"of": "x", "x": bob.user_id}).text
    assert bob.user_id in staff.get(path, {"of": "x", "x": "b."}).text
    assert staff.get(path, {"of": "x", "x": ".."}).text.strip() == ""
    assert staff.get(path).text.strip() == ""
    matches = staff.get("/admin/data/_User/names/", {"text": "an"}).json()
    assert matches == {"names": [{"id": ann.user_id, "name": "ann"}]}


def test_files_open_by_links_private_ones_by_links_that_expire(staff):
    public = stored("a.txt")
    answer = staff.get(f"/admin/file/{public}")
    assert answer.headers["Location"].endswith(f"/api/files/test-app/{public}")
    private = stored("b.txt", headers={**MASTER, "X-Svc-File-ACL": "{}"})
    answer = staff.get(f"/admin/file/{private}")
    assert "signature=" in answer.headers["Location"]
    assert staff.get(f"/admin/file/{new_stored_name('c.txt')}").status_code == 404
    assert staff.get("/admin/file/nothing").status_code == 404


@pytest.mark.parametrize("name", ["Nope", "1", "_Nothing", "<b>", "a b"])
def test_a_class_that_isn_t_there_is_404(staff, name):
    for tail in ("", "fields/", "export.csv"):
        page = staff.get(f"/admin/data/{name}/{tail}")
        assert page.status_code == 404
        assert "<b>" not in page.text


def test_the_classes_of_people_are_tables_too(staff):
    sign_up("ann")
    for name in ("_User", "_Session", "_Role", "_Installation"):
        assert staff.get(f"/admin/data/{name}/").status_code == 200
        assert grid_rows(staff, f"/admin/data/{name}/").status_code == 200
    where = '{"sessionToken": {"$regex": "^r"}}'
    assert shown_ids(grid_rows(staff, "/admin/data/_Session/", where=where)) == []
