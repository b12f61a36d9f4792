"""Ways around a rate limit that were found in Parse Server or are tried everywhere.

Each is shut: a request is counted as what it does in the end, however it is spelled or packed.
The advisory's id (GHSA-…) is in the docstring.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests import rest
from tests.rate_limits import limit, nothing_counted
from tests.rest import Api, Reply
from tests.threads import at_once

__all__ = ["limit", "nothing_counted"]

HERE, ELSEWHERE = "198.51.100.1", "198.51.100.2"


def item(method: str, path: str, body: Any = None) -> dict[str, Any]:
    request = {"method": method, "path": f"/api{path}"}
    return request if body is None else {**request, "body": body}


def batch(api: Api, *items: dict[str, Any], **options: Any) -> Reply:
    return api.post("/batch", {"requests": list(items), **options})


def codes(reply: Reply) -> list[int | None]:
    """The code of each item's error, None for a success."""
    assert reply.status == 200, reply.json
    return [answer["error"]["code"] if "error" in answer else None for answer in reply.json]


@pytest.fixture
def game(master):
    return master.make("Game", score=1)


# -- Batches --------------------------------------------------------------------------------------


def test_each_item_of_a_batch_is_counted(client, game, limit):
    """775h-3xrc-c228: only the request to /batch was counted."""
    limit({"path": "/classes/*"})
    reply = batch(client, *[item("GET", f"/classes/Game/{game}")] * 5)
    assert codes(reply) == [None, None, None, 100, 100]
    assert client.get(f"/classes/Game/{game}").status == 429


def test_an_item_over_the_limit_takes_no_other_with_it(client, game, limit):
    limit({"path": "/classes/Game", "methods": ["POST"], "count": 1})
    read = item("GET", f"/classes/Game/{game}")
    make = item("POST", "/classes/Game", {"score": 2})
    assert codes(batch(client, make, read, make, read)) == [None, None, 100, None]


def test_neighbouring_creates_are_counted_one_by_one(client, master, game, limit):
    """They are stored by one statement, which mustn't make them one request."""
    limit({"path": "/classes/Game", "methods": ["POST"]})
    creates = [item("POST", "/classes/Game", {"score": score}) for score in range(10, 15)]
    reply = batch(client, *creates)
    assert codes(reply) == [None, None, None, 100, 100]
    results = master.results("Game", where={"score": {"$gte": 10}}, order="score")
    assert [result["score"] for result in results] == [10, 11, 12]


def test_a_transaction_over_the_limit_is_refused_as_a_whole(client, master, game, limit):
    limit({"path": "/classes/Game", "methods": ["POST"]})
    creates = [item("POST", "/classes/Game", {"score": score}) for score in range(10, 14)]
    reply = batch(client, *creates, transaction=True)
    assert reply.error == (429, 100)
    assert int(reply.headers["Retry-After"]) >= 1
    assert master.results("Game", where={"score": {"$gte": 10}}) == []
    # Nothing was done, so nothing was counted.
    assert codes(batch(client, *creates[:3], transaction=True)) == [None, None, None]
    assert batch(client, creates[0], transaction=True).error == (429, 100)


def test_a_batch_that_can_not_be_routed_is_not_counted(client, game, limit):
    limit({"path": "/classes/*", "count": 1})
    read = item("GET", f"/classes/Game/{game}")
    assert batch(client, read, item("GET", "/nowhere")).error == (400, 107)
    assert codes(batch(client, read)) == [None]


@pytest.mark.parametrize("spelled", ["/classes/Game/", "/classes/Game?limit=1", "/classes/Game/?a"])
def test_the_spelling_of_an_item_s_path_is_no_way_around(client, game, limit, spelled):
    limit({"path": "/classes/Game", "count": 1})
    assert codes(batch(client, item("GET", "/classes/Game"), item("get", spelled))) == [None, 100]


def test_the_limit_of_the_batch_itself_is_another_one(client, game, limit):
    limit({"path": "/batch", "count": 1})
    assert codes(batch(client, *[item("GET", f"/classes/Game/{game}")] * 3)) == [None] * 3
    assert batch(client).status == 429


@pytest.mark.django_db(transaction=True)
def test_batches_at_the_same_moment_make_no_more_objects_than_the_limit_says(limit):
    master = Api(rest.MASTER)
    master.make("Game", score=1)
    limit({"path": "/classes/Game", "methods": ["POST"], "count": 8})
    creates = [item("POST", "/classes/Game", {"score": 2}) for _ in range(5)]
    at_once([lambda: batch(Api(rest.CLIENT), *creates) for _ in range(6)])
    assert len(master.results("Game", where={"score": 2})) == 8


# -- Users ----------------------------------------------------------------------------------------


def sessions_of(client: Api, name: str, number: int) -> list[Api]:
    """The same user, logged in several times."""
    account = {"username": name, "password": f"password of {name}"}
    assert client.post("/users", account).status == 201
    tokens = [client.post("/login", account).json["sessionToken"] for _ in range(number)]
    return [Api({**rest.CLIENT, "X-Svc-Session-Token": token}) for token in tokens]


def test_a_user_is_counted_over_sessions_and_addresses(client, game, limit):
    """4jj8-x76w-v7h7, jmvh-84q9-vvrc: a limit per user counted addresses instead."""
    first, second = sessions_of(client, "ann", 2)
    (stranger,) = sessions_of(client, "bob", 1)
    limit({"path": "/classes/*", "count": 2, "per": "user"})

    def get(api: Api, address: str) -> int:
        return api.call("GET", f"/classes/Game/{game}", REMOTE_ADDR=address).status

    assert get(first, HERE) == 200
    assert get(second, ELSEWHERE) == 200
    assert get(second, "198.51.100.3") == 429
    assert get(stranger, HERE) == 200
    assert codes(batch(second, item("GET", f"/classes/Game/{game}"))) == [100]


def test_a_wrong_session_token_makes_no_caller_of_its_own(game, limit):
    limit({"path": "/classes/*", "count": 2, "per": "session"})
    responses = [
        Api({**rest.CLIENT, "X-Svc-Session-Token": f"r:guess{n}"}).get(f"/classes/Game/{game}")
        for n in range(3)
    ]
    assert [reply.status for reply in responses] == [400, 400, 429]


# -- Methods --------------------------------------------------------------------------------------


def test_an_overridden_method_is_counted_as_what_it_becomes(client, game, limit):
    """vpvj-hfh8-388m: a POST with ``_method`` was counted as a POST."""
    limit({"path": "/classes/Game", "methods": ["GET"], "count": 2})
    assert client.get("/classes/Game").status == 200
    assert client.post("/classes/Game", {"_method": "GET"}).status == 200
    assert client.post("/classes/Game", {"_method": "get"}).status == 429
    assert client.post("/classes/Game", {"score": 2}).status == 201


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_method_can_not_be_named_to_be_counted_as_another(client, game, limit, method):
    """vpvj-hfh8-388m: ``_method`` counts in a POST alone, for the limit as for what is done."""
    limit({"path": "/classes/*", "methods": ["POST"], "count": 1})
    assert client.post("/classes/Game", {"score": 2}).status == 201
    assert client.call("POST", "/classes/Game", {"_method": "POST"}).status == 429
    limit({"path": "/classes/*", "methods": [method], "count": 1})
    assert client.call(method, f"/classes/Game/{game}", {"_method": "GET"}).status == 200
    assert client.call(method, f"/classes/Game/{game}", {"_method": "GET"}).status == 429


def test_head_is_counted_as_get(client, game, limit):
    limit({"path": "/classes/*", "methods": ["GET"], "count": 1})
    assert client.call("HEAD", f"/classes/Game/{game}").status == 200
    assert client.get(f"/classes/Game/{game}").status == 429


# -- Spellings of a path --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelled",
    [
        "/classes/Game?x=1",
        "/classes/Game/",
        "/classes/Game/?",
        "/classes/Game?&&&",
        "/classes/%47ame",
        "/%63lasses/Game",
        "/classes%2FGame",
    ],
)
def test_the_spelling_of_a_path_is_no_way_around(client, game, limit, spelled):
    """Pull request 10500: a query string made a path another one."""
    limit({"path": "/classes/Game", "count": 1})
    assert client.get("/classes/Game").status == 200
    assert client.call("GET", spelled).status == 429


@pytest.mark.parametrize(
    "spelled",
    ["/CLASSES/Game", "/classes//Game", "///classes/Game", "/classes/Game;x=1", "/classes/./Game"],
)
def test_what_is_not_counted_as_the_path_does_not_lead_there(client, game, limit, spelled):
    limit({"path": "/classes/Game", "count": 1})
    client.get("/classes/Game")
    assert client.call("GET", spelled).status in (400, 403, 404)


def test_a_class_of_people_has_no_second_door(client, limit):
    limit({"path": "/users", "methods": ["POST"], "count": 1})
    assert client.post("/users", {"username": "ann", "password": "a password"}).status == 201
    body = {"username": "bob", "password": "a password"}
    assert client.post("/classes/_User", body).status == 429
    assert client.post("/classes/_User/", body).status == 429
    assert codes(batch(client, item("POST", "/classes/_User", body))) == [100]
    assert codes(batch(client, item("POST", "/users", body))) == [100]


# -- Credentials and addresses --------------------------------------------------------------------


def test_where_the_credentials_stand_is_no_way_around(client, game, limit):
    limit({"path": "/classes/Game", "count": 1})
    assert client.get("/classes/Game").status == 200
    in_body = {"_method": "GET", "_ApplicationId": "test-app", "_RestAPIKey": "test-rest-key"}
    assert Api({}).call("POST", "/classes/Game", in_body, content_type="text/plain").status == 429
    alias = {"X-Parse-Application-Id": "test-app", "X-Parse-REST-API-Key": "test-rest-key"}
    assert Api(alias).get("/classes/Game").status == 429
    other_key = {**rest.APPLICATION, "X-Svc-JavaScript-Key": "test-javascript-key"}
    assert Api(other_key).get("/classes/Game").status == 429
    named = Api({**rest.CLIENT, "X-Svc-Installation-Id": "another"})
    assert named.get("/classes/Game").status == 429


def test_headers_that_claim_an_address_are_not_believed(client, game, limit):
    limit({"path": "/classes/Game", "count": 1})
    assert client.call("GET", "/classes/Game", REMOTE_ADDR=HERE).status == 200
    for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "Client-IP", "True-Client-IP"):
        claim = {name: f"for={ELSEWHERE}" if name == "Forwarded" else ELSEWHERE}
        reply = client.call("GET", "/classes/Game", headers=claim, REMOTE_ADDR=HERE)
        assert reply.status == 429


def test_guesses_of_the_master_key_are_counted(limit, game):
    limit({"path": "/classes/*"})
    guesses = [
        Api({**rest.APPLICATION, "X-Svc-Master-Key": f"guess {n}"}).get("/classes/Game").status
        for n in range(5)
    ]
    assert guesses == [403, 403, 403, 429, 429]


# -- Log in ---------------------------------------------------------------------------------------


def guess(api: Api, name: str, address: str) -> Reply:
    body = {"username": name, "password": "a guess"}
    return api.call("POST", "/login", body, REMOTE_ADDR=address)


def test_by_default_an_address_guesses_the_password_of_an_account_ten_times_a_minute(client, limit):
    limit("defaults")
    statuses = [guess(client, "ann", HERE).status for _ in range(12)]
    assert 429 not in statuses[:10]
    assert statuses[10:] == [429, 429]
    assert guess(client, "bob", HERE).status != 429


def test_by_default_passwords_of_an_account_are_guessed_a_hundred_times_a_minute(client, limit):
    limit("defaults")
    statuses = [guess(client, "ann", f"198.51.100.{n}").status for n in range(102)]
    assert 429 not in statuses[:100]
    assert statuses[100:] == [429, 429]


def test_a_thousand_guesses_of_a_stranger_do_not_lock_the_owner_out(client, limit):
    limit("defaults")
    account = {"username": "ann", "password": "password of ann"}
    client.call("POST", "/users", account, REMOTE_ADDR=HERE)
    right = {"method": "POST", "path": "/api/login", "body": account}
    guesses = [item("POST", "/login", {"username": "ann", "password": "a guess"})] * 100
    for _ in range(10):
        reply = client.call("POST", "/batch", {"requests": guesses}, REMOTE_ADDR=ELSEWHERE)
        assert reply.status == 200
    # From there not even the right one.
    reply = client.call("POST", "/batch", {"requests": [right]}, REMOTE_ADDR=ELSEWHERE)
    assert codes(reply) == [100]
    assert client.call("POST", "/login", account, REMOTE_ADDR=HERE).status == 200


def test_by_default_an_address_guesses_twenty_times_a_minute(client, limit):
    limit("defaults")
    statuses = [guess(client, f"user{n}", HERE).status for n in range(21)]
    assert 429 not in statuses[:20]
    assert statuses[20] == 429


def statuses_of_sign_ups(client, count, **fields):
    replies = [client.call("POST", "/users", fields, REMOTE_ADDR=HERE) for _ in range(count)]
    return [reply.status for reply in replies]


def test_by_default_users_behind_one_address_sign_in_by_other_services_sixty_times_a_minute(
    client, limit
):
    limit("defaults")
    statuses = statuses_of_sign_ups(client, 61, authData={"google": {"id_token": "x"}})
    assert 429 not in statuses[:60]
    assert statuses[60] == 429


@pytest.mark.parametrize(
    "fields",
    [
        {"username": "ann", "authData": None},
        {"username": "ann", "password": "a password", "authData": {"google": {"id_token": "x"}}},
        {"email": "ann@example.org", "authData": {"google": {"id_token": "x"}}},
    ],
)
def test_by_default_an_address_signs_up_twenty_times_an_hour_whatever_comes_along(
    client, limit, fields
):
    limit("defaults")
    statuses = statuses_of_sign_ups(client, 21, **fields)
    assert 429 not in statuses[:20]
    assert statuses[20] == 429


@pytest.mark.parametrize("name", ["ANN", " Ann ", "ａｎｎ", "ann\u3000"])  # noqa: RUF001
def test_the_spelling_of_a_name_is_no_way_around(client, limit, name):
    limit({"path": "/login", "count": 1, "per": "account"})
    assert guess(client, "ann", HERE).status != 429
    assert guess(client, name, ELSEWHERE).status == 429


def test_the_place_of_a_name_is_no_way_around(client, limit):
    limit({"path": ["/login", "/verifyPassword"], "count": 1, "per": "account"})
    assert guess(client, "ann", HERE).status != 429
    query = urlencode({"username": "ann", "password": "a guess"})
    guesses = (
        client.call("GET", f"/login?{query}"),
        client.call("POST", f"/login?{query}", {}),
        client.call("POST", f"/login?{query}", {"username": "bob"}),
        client.call("POST", "/login", {"username": "bob", "email": "ann"}),
        client.call("POST", "/login", {"_method": "GET", "username": "ann", "password": "x"}),
        client.call("GET", f"/verifyPassword?{query}"),
    )
    assert [reply.status for reply in guesses] == [429] * len(guesses)
    body = {"username": "ann", "password": "a guess"}
    assert codes(batch(client, item("POST", "/login", body))) == [100]
    assert codes(batch(client, item("GET", f"/login?{query}"))) == [100]


def test_guesses_in_batches_are_counted_by_account(client, limit):
    """775h-3xrc-c228"""
    limit("defaults")
    body = {"username": "ann", "password": "a guess"}
    results = codes(batch(client, *[item("POST", "/login", body)] * 15))
    assert 100 not in results[:10]
    assert results[10:] == [100] * 5


# -- Mail -----------------------------------------------------------------------------------------


def submit(path: str, form: bytes) -> int:
    """The status of a browser's form: no keys, no JSON."""
    media_type = "application/x-www-form-urlencoded"
    return Client().post(f"/api{path}", form, content_type=media_type).status_code


def test_a_page_that_sends_mail_is_counted_as_the_route_that_does(client, limit):
    limit({"path": "/requestPasswordReset", "count": 1}, {"path": "/verificationEmailRequest"})
    form = urlencode({"email": "ann@example.org"}).encode()

    assert client.post("/requestPasswordReset", {"email": "ann@example.org"}).status == 200
    assert submit("/apps/test-app/request_password_reset", form) == 429
    for _ in range(3):
        assert submit("/apps/test-app/resend_verification_email", form) != 429
    assert submit("/apps/test-app/resend_verification_email", form) == 429
    assert client.post("/verificationEmailRequest", {"email": "ann@example.org"}).status == 429


def test_a_password_that_is_corrected_on_the_page_is_not_counted(limit):
    limit({"path": "/requestPasswordReset", "count": 1})
    form = urlencode({"token": "of a mail", "new_password": "short"}).encode()
    path = "/apps/test-app/request_password_reset"
    assert 429 not in [submit(path, form) for _ in range(3)]
