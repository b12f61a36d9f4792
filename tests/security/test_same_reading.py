"""No two layers read the same bytes differently: a spelling of a name is the name, or is refused.

The routes come from the URL configuration itself, so a new route takes part by being there; a new
kind of name has to be given a value in ``world``. Whatever is refused is refused in the service's
own form and leaves the database as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection, transaction
from django.test import Client

from tests.module_rows import module_rows
from tests.people import PASSWORD, make_role, sign_up
from tests.rest import CLIENT, MASTER, Api
from tests.security.spellings import NAME, SPELLINGS, Place, Spelling, places, routes

pytestmark = pytest.mark.django_db

# Where another text is another name that nothing has to exist for.
FREE = {"events/<str:name>", "files/<str:name>"}
# Removing what isn't there is no error there.
FREE_TO_DELETE = {
    "hooks/functions/<str:name>",
    "hooks/triggers/<str:class_name>/<str:trigger_name>",
}
# As with Parse, the description of what isn't there is empty.
EMPTY_IF_MISSING = {"files/<str:app_id>/metadata/<path:name>"}
# Pages for browsers, whose refusals are pages as well, but for the paths that no layer accepts.
PAGES = "apps/"
_VOLATILE = {"objectId", "createdAt", "updatedAt", "sessionToken", "expiresAt", "url", "name"}
_MARKER = "only the canonical name leads to this"


def methods_of(place: Place) -> bool:
    """Whether the view has the method; every other is the same refusal for every name."""
    if place.view is None:
        return place.method == "GET"
    if hasattr(place.view, "show"):
        return place.method in ("GET", "POST")
    return place.method in place.view()._methods()


PLACES = [place for place in places() if methods_of(place)]


class World:
    """What there is to be reached by a name, with the headers of those who may."""

    def __init__(self, master: Api) -> None:
        self.user = sign_up("ann")
        self.ids = {
            "classes": master.make("Game", note=_MARKER, score=1),
            "push_audiences": master.make("_Audience", name=_MARKER, query="{}"),
            "users": self.user.user_id,
            "sessions": self.user.results("_Session")[0]["objectId"],
            "roles": make_role(master, "Crew", [self.user]),
            "installations": master.make("_Installation", installationId="a-b", deviceType="ios"),
        }
        sent_file = master.call("POST", "/files/a.txt", raw=b"hello", content_type="text/plain")
        self.file: str = sent_file.json["name"]
        master.make("Blockchain", networkId=5)
        provider = {"name": "main", "url": "https://node.example/"}
        assert master.post("/networks/5/providers", provider).status == 201
        hook = {"className": "Game", "triggerName": "beforeLogin"}
        assert master.post("/hooks/triggers", hook).status == 400
        for body in (
            {"functionName": "remote", "url": "https://example.org/remote"},
            {"className": "Shelf", "triggerName": "afterSave", "url": "https://example.org/saved"},
        ):
            kind = "functions" if "functionName" in body else "triggers"
            assert master.post(f"/hooks/{kind}", body).status == 200

    def values(self, route: str) -> dict[str, str]:
        """A value of each name in the route. ``KeyError``: a new kind of name needs one."""
        first = route.partition("/")[0]
        existing = {
            "object_id": self.ids.get(first, ""),
            "class_name": "Shelf" if first == "hooks" else "Game",
            "trigger_name": "afterSave",
            "app_id": "test-app",
            "notice": "password_changed",
            "network_id": "5",
            "name": {
                "functions": "loadAllBlockchains",
                "files": self.file,
                "events": "seen",
                "hooks": "remote",
                "jobs": "nightly",
                "cloud_code": "nightly",
                "networks": "main",
            }.get(first, ""),
        }
        values = {name: existing[name] for name in NAME.findall(route)}
        assert all(values.values()), f"{route}: {values}"
        return values

    def headers(self, place: Place) -> dict[str, str]:
        if place.master or place.route.startswith(("installations", "events", "files", "roles")):
            return MASTER
        return self.user.headers


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    with module_rows(django_db_blocker):
        yield World(Api(MASTER))


def body_of(route: str) -> dict[str, Any]:
    if route.startswith("schemas"):
        return {"fields": {"extra": {"type": "String"}}}
    if route.startswith("hooks"):
        return {"url": "https://example.org/other"}
    if route.startswith(("classes", "installations")):
        return {"score": 2}
    return {}


def stored() -> str:
    """A digest of everything in the database that requests can change."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1"
        )
        digests = " UNION ALL ".join(
            f"SELECT '{name}', md5(COALESCE(string_agg(t::text, ',' ORDER BY t::text), ''))"
            f' FROM "{name}" t'
            for (name,) in cursor.fetchall()
        )
        cursor.execute(digests)
        return str(sorted(cursor.fetchall()))


Answer = tuple[int, Any]


class Undone(Exception):
    pass


def sent(client: Client, place: Place, headers: dict[str, str], path: str) -> Answer:
    """The answer to a request whose success leaves nothing behind."""
    answer: Answer = (0, None)
    body = b"" if place.method == "GET" else json.dumps(body_of(place.route)).encode()
    try:
        with transaction.atomic():
            response = client.generic(
                place.method, f"/api{path}", body, "application/json", headers=headers
            )
            is_json = response.headers.get("Content-Type", "").startswith("application/json")
            content = b"".join(response) if response.streaming else response.content
            # Pages have a secret of their own in each answer.
            answer = response.status_code, json.loads(content) if is_json else "not JSON"
            if response.status_code < 400:
                raise Undone
    except Undone:
        pass
    return answer


def steady(value: Any) -> Any:
    """An answer without what is new in every answer."""
    if isinstance(value, dict):
        return {name: steady(item) for name, item in value.items() if name not in _VOLATILE}
    return [steady(item) for item in value] if isinstance(value, list) else value


def check(place: Place, spelling: Spelling, answer: Answer, canonical: Answer) -> None:
    status, body = answer
    label = f"{place}: {spelling.label}: {status} {body!r:.200}"
    assert status < 500, label
    is_last = place.route.endswith(f":{place.name}>")
    if spelling.unreadable:
        expected = {103 if place.name == "class_name" else 105}
        if f"<path:{place.name}>" in place.route:
            expected.add(108)  # no part of a path has a line break: the path itself is refused
        assert (status, set(body)) == (400, {"code", "error"}), label
        assert body["code"] in expected, label
    elif spelling.same and (is_last or spelling.label != "a slash behind"):
        assert (status, steady(body)) == (canonical[0], steady(canonical[1])), label
    elif status >= 400:
        assert place.route.startswith(PAGES) or set(body) == {"code", "error"}, label
    else:
        # Another name, which is none of the canonical one's business.
        allowed = place.route in FREE or spelling.label in ("the other case", "empty")
        allowed |= place.method == "DELETE" and place.route in FREE_TO_DELETE and body == {}
        allowed |= place.route in EMPTY_IF_MISSING and body == {}
        assert allowed, label
        assert spelling.label == "empty" or _MARKER not in str(body), label


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_spelling_in_a_path_is_the_name_or_is_refused(world: World, place: Place):
    client, headers = Client(raise_request_exception=False), world.headers(place)
    values = world.values(place.route)
    canonical = sent(client, place, headers, place.path(values, quote(values[place.name])))
    assert canonical[0] < 500
    before = stored()
    for spelling in SPELLINGS:
        path = place.path(values, spelling.spell(values[place.name]))
        check(place, spelling, sent(client, place, headers, path), canonical)
    assert stored() == before


IN_BATCHES = [
    place for place in PLACES if place.view is not None and not place.route.startswith(PAGES)
]


@pytest.mark.parametrize("place", IN_BATCHES, ids=str)
def test_a_spelling_in_a_batch_is_read_as_in_a_request(world: World, place: Place):
    """An item has its path as a text, so it may be encoded or not; both mean what requests mean."""
    client, headers = Client(raise_request_exception=False), world.headers(place)
    values = world.values(place.route)
    before = stored()
    for spelling in SPELLINGS:
        path = place.path(values, spelling.spell(values[place.name]))
        by_itself = sent(client, place, headers, path)
        item = {"method": place.method, "path": f"/api{path}", "body": body_of(place.route)}
        for together in (False, True):
            status, body = in_batch(client, headers, item, together=together)
            label = f"{place}: {spelling.label}: {status} {body!r:.200} beside {by_itself!r:.200}"
            assert status < 500, label
            if spelling.label == "empty":
                continue  # another route, whose answer isn't this test's business
            if by_itself[0] < 400:
                # Some routes can't be part of a batch or of a transaction.
                assert status >= 400 or steady(body) == steady(by_itself[1]), label
            else:
                assert status >= 400, label
                if spelling.unreadable:
                    assert body["code"] == by_itself[1]["code"], label
    assert stored() == before


def in_batch(
    client: Client, headers: dict[str, str], item: dict[str, Any], *, together: bool
) -> Answer:
    """The answer to one item, with the status that says whether it was refused."""
    answer: Answer = (0, None)
    try:
        with transaction.atomic():
            response = client.post(
                "/api/batch",
                {"requests": [item], "transaction": together},
                "application/json",
                headers=headers,
            )
            body = response.json()
            if response.status_code != 200:
                assert set(body) == {"code", "error"}
                return response.status_code, body
            answer = (400, body[0]["error"]) if "error" in body[0] else (200, body[0]["success"])
            raise Undone
    except Undone:
        pass
    return answer


@pytest.mark.parametrize("route", routes())
def test_a_control_character_behind_any_route_is_refused(route: str):
    client = Client(raise_request_exception=False)
    for raw in ("%00", "%0A", "%7F", "%FF", "%2500", "/%00"):
        response = client.get(f"/api/{NAME.sub('a', route)}{raw}", headers=CLIENT)
        assert response.status_code == 400, (route, raw)
        assert response.json()["code"] in (103, 105, 108)


def admin_paths() -> Iterator[str]:
    """Every address of the admin, with a text in place of what varies."""
    from django.urls import get_resolver

    def walk(patterns: list[Any], before: str) -> Iterator[str]:
        for pattern in patterns:
            route = getattr(pattern.pattern, "_route", None)
            if route is None:
                continue
            here = before + route
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern.url_patterns, here)
            else:
                yield here

    return walk(get_resolver().url_patterns, "")


def test_a_control_character_in_any_address_outside_of_rest_is_refused():
    import re

    paths = {re.sub(r"<[^>]+>", "a", path) for path in admin_paths()}
    assert len(paths) > 50
    client = Client(raise_request_exception=False)
    for path in sorted(paths):
        for raw in ("%00", "%0A", "%FF", "%2500"):
            response = client.get(f"/{path}{raw}")
            assert response.status_code == 400, path
            assert response.json()["code"] == 108


# -- Names in bodies ------------------------------------------------------------------------------

UNREADABLE = ["{}\x00", "\x00{}", "{}\x00x", "{}\ud800", "{}\n", "{}\x7f"]
OTHERWISE = ["{} ", " {}", "{}\u00a0", "\ufeff{}", "{}\u200d", "{}\u0301", ""]

Call = Callable[[Api, World, str], Any]


def _pointer(class_name: str, object_id: str) -> dict[str, str]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


# Where a body or a query names something: the name, and a request with a text in its place.
BODIES: dict[str, tuple[Callable[[World], str], Call]] = {
    "className of a pointer": (
        lambda world: "Game",
        lambda api, world, text: api.post(
            "/classes/Ref", {"to": _pointer(text, world.ids["classes"])}
        ),
    ),
    "objectId of a pointer": (
        lambda world: world.ids["classes"],
        lambda api, world, text: api.post("/classes/Ref", {"to": _pointer("Game", text)}),
    ),
    "className of a sub-query": (
        lambda world: "Game",
        lambda api, world, text: api.get(
            "/classes/Ref", where={"to": {"$inQuery": {"className": text, "where": {}}}}
        ),
    ),
    "class of a lookup": (
        lambda world: "Game",
        lambda api, world, text: api.get(
            "/aggregate/Game",
            pipeline=[
                {"$lookup": {"from": text, "localField": "a", "foreignField": "b", "as": "c"}}
            ],
        ),
    ),
    "targetClass of a field": (
        lambda world: "Game",
        lambda api, world, text: api.put(
            "/schemas/Ref", {"fields": {"more": {"type": "Pointer", "targetClass": text}}}
        ),
    ),
    "className of a schema": (
        lambda world: "Game",
        lambda api, world, text: api.put("/schemas/Game", {"className": text, "fields": {}}),
    ),
    "a field": (
        lambda world: "score",
        lambda api, world, text: api.put(f"/classes/Game/{world.ids['classes']}", {text: 3}),
    ),
    "a field of a query": (
        lambda world: "score",
        lambda api, world, text: api.get("/classes/Game", where={text: 1}),
    ),
    "a field of a schema": (
        lambda world: "more",
        lambda api, world, text: api.put("/schemas/Ref", {"fields": {text: {"type": "String"}}}),
    ),
    "an entry of an access list": (
        lambda world: world.ids["users"],
        lambda api, world, text: api.put(
            f"/classes/Game/{world.ids['classes']}", {"ACL": {text: {"read": True}}}
        ),
    ),
    "a role of an access list": (
        lambda world: "role:Crew",
        lambda api, world, text: api.put(
            f"/classes/Game/{world.ids['classes']}", {"ACL": {text: {"read": True}}}
        ),
    ),
    "a role of class permissions": (
        lambda world: "role:Crew",
        lambda api, world, text: api.put(
            "/schemas/Game", {"classLevelPermissions": {"find": {text: True}}}
        ),
    ),
    "a webhook's class": (
        lambda world: "Game",
        lambda api, world, text: api.post(
            "/hooks/triggers",
            {"className": text, "triggerName": "afterSave", "url": "https://example.org"},
        ),
    ),
    "a webhook's trigger": (
        lambda world: "afterSave",
        lambda api, world, text: api.post(
            "/hooks/triggers",
            {"className": "Game", "triggerName": text, "url": "https://example.org"},
        ),
    ),
    "a webhook's function": (
        lambda world: "remote2",
        lambda api, world, text: api.post(
            "/hooks/functions", {"functionName": text, "url": "https://example.org"}
        ),
    ),
    "a job": (
        lambda world: "nightly",
        lambda api, world, text: api.post("/jobs", {"jobName": text}),
    ),
    "loginAs": (
        lambda world: world.ids["users"],
        lambda api, world, text: api.post("/loginAs", {"userId": text}),
    ),
    "a session's user": (
        lambda world: world.ids["users"],
        lambda api, world, text: api.post("/sessions", {"user": _pointer("_User", text)}),
    ),
    "a role's name": (
        lambda world: "Fresh",
        lambda api, world, text: api.post("/roles", {"name": text, "ACL": {}}),
    ),
    "redirectClassNameForKey": (
        lambda world: "to",
        lambda api, world, text: api.post(
            "/classes/Ref", {"_method": "GET", "redirectClassNameForKey": text}
        ),
    ),
}
# Where an empty text is the same as none.
MAY_BE_EMPTY = {"className of a schema", "redirectClassNameForKey"}
# Names of roles have spaces: an access list may name a role that isn't there.
MAY_HAVE_SPACES = {"a role of an access list", "a role of class permissions"}


@pytest.mark.parametrize("place", BODIES)
def test_a_spelling_in_a_body_is_refused(master: Api, world: World, place: str):
    name_of, call = BODIES[place]
    master.make("Ref", to=_pointer("Game", world.ids["classes"]))
    name, before = name_of(world), stored()
    for form in (*UNREADABLE, *OTHERWISE):
        if (form == "" and place in MAY_BE_EMPTY) or (form == "{} " and place in MAY_HAVE_SPACES):
            continue
        reply = call(master, world, form.format(name))
        assert 400 <= reply.status < 500, (place, form, reply.json)
        assert set(reply.json) == {"code", "error"}
    assert stored() == before
    assert call(master, world, name).status < 500


# -- Accounts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ANN", "Ann", "ａｎｎ", "ＡＮＮ"])  # noqa: RUF001
def test_case_and_width_make_no_other_account(world: World, form: str):
    client = Api(CLIENT)
    assert client.post("/login", {"username": form, "password": PASSWORD}).status == 200
    assert client.post("/users", {"username": form, "password": PASSWORD}).error == (400, 202)


@pytest.mark.parametrize("form", ["a nn", "a\u200dnn", "\ufeffann", "ann\u0301"])
def test_a_name_that_only_looks_like_another_finds_no_account(world: World, form: str):
    reply = Api(CLIENT).post("/login", {"username": form, "password": PASSWORD})
    assert reply.error == (404, 101)


def test_a_password_that_contains_the_user_name_is_found_whatever_its_spelling(db, settings):
    settings.SERVICE = {**settings.SERVICE, "PASSWORD_NOT_USERNAME": True}
    for password in ("my ann", "my ANN", "my ａｎｎ"):  # noqa: RUF001
        reply = Api(CLIENT).post("/users", {"username": "ann", "password": password})
        assert reply.error == (400, 142), password


# -- What is sent twice ---------------------------------------------------------------------------


def test_of_a_key_that_is_there_twice_the_last_counts_everywhere(master: Api, world: World):
    path = f"/classes/Game/{world.ids['classes']}"
    assert master.call("PUT", path, raw=b'{"score": 5, "score": 6}').status == 200
    assert master.get(path).json["score"] == 6
    assert master.call("PUT", path, raw=b'{"score": 5, "sc\\u006fre": 7}').status == 200
    assert master.get(path).json["score"] == 7
    where = quote('{"score": 1, "score": 7}')
    assert len(master.call("GET", f"/classes/Game?where={where}").json["results"]) == 1
    raw = b'{"_method": "DELETE", "_method": "GET"}'
    assert master.call("POST", path, raw=raw).json["score"] == 7


def test_credentials_that_are_there_twice_are_the_last(world: World):
    def keys(*names: str) -> bytes:
        pairs = [("_ApplicationId", "test-app"), ("_method", "GET")]
        pairs += [("_MasterKey", name) for name in names]
        return ("{" + ",".join(f'"{name}":"{value}"' for name, value in pairs) + "}").encode()

    api = Api({})
    right, wrong = "test-master-key", "wrong"
    assert api.call("POST", "/schemas", raw=keys(wrong, right)).status == 200
    assert api.call("POST", "/schemas", raw=keys(right, wrong)).error == (403, 261)
    for source, status in ((keys(wrong, right), 201), (keys(right, wrong), 403)):
        raw = source.replace(b'"_method":"GET"', b'"base64":"YQ=="')
        assert api.call("POST", "/files/a.txt", raw=raw, content_type="text/plain").status == status


def test_of_a_parameter_that_is_there_twice_the_last_counts_everywhere(world: World):
    client = Api(world.user.headers)
    assert client.call("GET", "/classes/Game?limit=0&limit=1").json["results"]
    assert not client.call("GET", "/classes/Game?limit=1&limit=0").json["results"]
    item = {"method": "GET", "path": "/api/classes/Game?limit=1&limit=0"}
    assert client.post("/batch", {"requests": [item]}).json[0]["success"] == {"results": []}


def test_the_own_header_counts_with_its_alias(world: World):
    for name in ("Application-Id", "Master-Key"):
        right = {"X-Svc-Application-Id": "test-app", "X-Svc-Master-Key": "test-master-key"}
        assert Api({**right, f"X-Parse-{name}": "wrong"}).get("/schemas").status == 200
        wrong = {**right, f"X-Svc-{name}": "wrong"}
        wrong[f"X-Parse-{name}"] = right[f"X-Svc-{name}"]
        assert Api(wrong).get("/schemas").status == 403


# -- Numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "number"),
    [
        *((text, 1) for text in ("1", "1.0", "1e0", "10e-1", "0.1e1", "1.000000000000000000")),
        *((text, 0) for text in ("0", "-0", "0.0", "-0.0", "0e5", "-0e-5")),
        ("9007199254740993", 9007199254740993),
        ("1e16", 10**16),
        ("1e22", 10**22),
    ],
)
def test_a_number_is_the_same_however_it_is_spelled(master: Api, spelled: str, number: int):
    object_id = master.make("Sum", total=7)
    raw = f'{{"total": {spelled}}}'.encode()
    assert master.call("PUT", f"/classes/Sum/{object_id}", raw=raw).status == 200
    stored_number = master.get(f"/classes/Sum/{object_id}").json["total"]
    assert (stored_number, type(stored_number)) == (number, int)
    where = quote(f'{{"total": {spelled}}}')
    assert len(master.call("GET", f"/classes/Sum?where={where}").json["results"]) == 1


@pytest.mark.parametrize(
    "spelled",
    ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "01", "+1", ".5", "5.", "0x1", "1_0", "１"],  # noqa: RUF001
)
def test_what_is_no_number_in_json_is_refused(master: Api, spelled: str):
    object_id = master.make("Sum", total=7)
    raw = f'{{"total": {spelled}}}'.encode()
    for method, path in (("PUT", f"/classes/Sum/{object_id}"), ("POST", "/classes/Sum")):
        reply = master.call(method, path, raw=raw)
        assert reply.status == 400, reply.json
    where = quote(f'{{"total": {spelled}}}')
    assert master.call("GET", f"/classes/Sum?where={where}").status == 400
    assert [result["total"] for result in master.results("Sum")] == [7]


@pytest.mark.parametrize("spelled", ["１", "1e1", "0x1", "+1", "1_0", " 1 ", "1.0", "٣"])  # noqa: RUF001
def test_a_limit_is_a_whole_number_in_ascii_digits(master: Api, spelled: str):
    master.make("Sum", total=7)
    for name in ("limit", "skip"):
        assert master.call("GET", f"/classes/Sum?{name}={quote(spelled)}").error[0] == 400


# -- Sockets ---------------------------------------------------------------------------------------


def test_a_socket_s_path_is_its_name_to_the_last_character():
    from realtime.routing import websocket_urlpatterns

    names = ("ws", "livequery", "api")
    for name in names:
        assert any(route.pattern.match(name) for route in websocket_urlpatterns)
        for other in (f"{name}\n", f"{name}\x00", f"{name}/\n", f"{name} ", name.upper()):
            assert not any(route.pattern.match(other) for route in websocket_urlpatterns)


def test_a_header_with_underscores_is_not_the_header_with_hyphens():
    from realtime.process.admission import address_of, headers_of

    scope = {
        "client": None,
        "headers": [(b"x-forwarded-for", b"192.0.2.1"), (b"x_forwarded_for", b"198.51.100.9")],
    }
    headers = headers_of(scope)
    assert headers == {"x-forwarded-for": "192.0.2.1"}
    assert address_of(scope, headers) == "192.0.2.1"


@pytest.mark.parametrize("form", [*UNREADABLE, *OTHERWISE])
def test_a_live_query_s_class_is_its_name_or_is_refused(form: str):
    from backend.kernel.errors import InvalidClassName
    from realtime.livequery.query_parsing import check_class

    assert check_class("Game") == "Game"
    with pytest.raises(InvalidClassName):
        check_class(form.format("Game"))
