"""The table of a class's objects."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from objects.files.names import new_stored_name
from tests.objects.admin.games import GAME, make, make_class, query, stored_object
from tests.objects.admin.staff import logged_in
from tests.objects.files.uploads import stored
from tests.people import sign_up
from tests.rest import MASTER

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def shown_ids(page) -> list[str]:
    return re.findall(r'name="ids" value="([^"]+)"', page.text)


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
    names = ["title", "score", "won", "playedAt", "player", "picture", "place", "tags", "details"]
    names += ["key", "area", "fans", "ACL"]
    address = GAME + "?choose=1" + "".join(f"&columns={name}" for name in names)
    page = staff.get(address, follow=True).text
    assert 'title="' + "a long text " * 20 in page
    assert "10000000000000000000000000" in page
    assert ">false<" in page
    assert 'title="2024-05-04T10:30:00.250Z">2024-05-04 10:30:00<' in page
    assert f'href="/admin/data/_User/o/{ann.user_id}/"' in page
    assert f'src="/admin/file/{mine}"' in page
    assert "48.2°, 16°" in page
    assert "{&quot;a&quot;:null}" in page
    assert "3 corners" in page
    assert "/relation/fans/" in page
    assert "*: r, role:Judges: w" in page


def test_null_is_told_from_a_missing_value(staff):
    make(title=None)
    make()
    page = staff.get(GAME).text
    assert page.count(">null<") == 1
    assert 'aria-label="no value"' in page


def test_a_file_that_isn_t_ours_is_no_picture_and_no_script(staff, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_DOMAINS": ("cdn.example.org",)}
    make(picture={"__type": "File", "name": "a.png", "url": "https://cdn.example.org/a.png"})
    page = staff.get(GAME).text
    assert 'href="https://cdn.example.org/a.png"' in page
    assert "sv-thumbnail" not in page


def test_columns_are_chosen_and_remembered_for_each_class(staff):
    make(title="seen", score=7)
    page = staff.get(f"{GAME}?choose=1&columns=score", follow=True)
    assert "seen" not in page.text
    assert "seen" not in staff.get(GAME).text
    page = staff.get(f"{GAME}?choose=1", follow=True)
    assert "seen" in page.text
    assert staff.get(f"{GAME}?choose=1&columns=nothing", follow=True).status_code == 200


def test_the_newest_come_first_and_a_click_sorts(staff):
    ids = [make(score=score) for score in (2, 1, 3)]
    ages = {item: (stored_object(item)["createdAt"], item) for item in ids}
    assert shown_ids(staff.get(GAME)) == sorted(ids, key=ages.__getitem__, reverse=True)
    page = staff.get(GAME, {"order": "score"})
    assert shown_ids(page) == [ids[1], ids[0], ids[2]]
    assert "order=-score" in page.text
    assert shown_ids(staff.get(GAME, {"order": "-score"})) == [ids[2], ids[0], ids[1]]


def test_pages_lead_on_and_back(staff):
    ids = [make(score=number) for number in range(120)]
    observed, page = [], staff.get(GAME, {"order": "score"})
    while True:
        observed += shown_ids(page)
        onwards = re.search(r'rel="next" href="([^"]+)"', page.text)
        if onwards is None:
            break
        page = staff.get(GAME + onwards[1].replace("&amp;", "&"))
    assert observed == ids
    back = re.search(r'rel="prev" href="([^"]+)"', page.text)
    assert back is not None
    page = staff.get(GAME + back[1].replace("&amp;", "&"))
    assert shown_ids(page) == ids[50:100]


def test_a_filter_is_built_from_a_form_shown_as_json_and_taken_away(staff):
    low, high = make(score=1), make(score=9)
    answer = staff.get(GAME, {"add": "1", "field": "score", "operator": "gt", "value": "5"})
    assert answer.status_code == 302
    page = staff.get(answer.headers["Location"])
    assert shown_ids(page) == [high]
    assert "{&quot;score&quot;:{&quot;$gt&quot;:5}}" in page.text
    assert set(shown_ids(staff.get(GAME, {"where": ""}))) == {high, low}


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
    assert shown_ids(page) == []
    # What was written stays to be corrected.
    assert where[:50].replace('"', "&quot;") in page.text


@pytest.mark.parametrize(
    "params",
    [
        {"order": "tags"},
        {"order": "nothing"},
        {"after": "x"},
        {"before": "W10"},
        {"add": "1", "field": "score", "operator": "gt", "value": "x"},
        {"add": "1", "field": "<b>", "operator": "gt", "value": "1"},
        {"add": "1", "field": "score", "operator": "begins", "value": "1"},
    ],
)
def test_odd_parameters_are_refused_in_place(staff, params):
    page = staff.get(GAME, params)
    assert page.status_code == 400
    assert 'role="alert"' in page.text


def test_counting_is_done_when_requested(staff):
    for number in range(60):
        make(score=number)
    page = staff.get(GAME, {"where": '{"score": {"$gte": 5}}', "count": "1"})
    assert "<strong>55 found</strong>" in page.text
    assert "found" not in staff.get(GAME).text


def test_a_search_around_a_point_comes_by_distance(staff):
    ids = [
        make(place={"__type": "GeoPoint", "latitude": latitude, "longitude": 0})
        for latitude in (3, 1, 2)
    ]
    near = {"place": {"$nearSphere": {"__type": "GeoPoint", "latitude": 0, "longitude": 0}}}
    page = staff.get(GAME, {"where": json.dumps(near)})
    assert shown_ids(page) == [ids[1], ids[2], ids[0]]
    assert "The nearest come first" in page.text


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
    page = staff.get(query("/admin/data/_Session/", where='{"sessionToken": {"$regex": "^r"}}'))
    assert shown_ids(page) == []
