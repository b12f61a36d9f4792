"""Requests with an id are carried out once, however often they are sent (docs/idempotency.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from objects.idempotency.models import KeptAnswer
from objects.tasks import remove_expired
from tests.people import PASSWORD, log_in, sign_up
from tests.rest import CLIENT, MASTER, READ_ONLY, Api
from tests.threads import at_once, wait_until_somebody_waits_for_us

FIRST = "3b241101-e2bb-4255-8caf-4136c566a962"
INCREMENT = {"score": {"__op": "Increment", "amount": 1}}


def with_id(api: Api, request_id: str = FIRST, header: str = "X-Svc-Request-Id") -> Api:
    """The same caller, whose requests all have this id."""
    return Api({**api.headers, header: request_id})


def setting(settings, **values):
    settings.SERVICE = {**settings.SERVICE, **values}


def replayed(reply) -> bool:
    return reply.headers.get("Idempotent-Replayed") == "true"


@pytest.fixture
def game(master):
    return f"/classes/Game/{master.make('Game', score=0)}"


def score(game: str) -> int:
    number: int = Api(MASTER).get(game).json["score"]
    return number


def test_a_create_that_is_sent_again_gets_the_first_answer_and_creates_nothing(master):
    again = with_id(master)
    first = again.post("/classes/Game", {"score": 1})
    assert (first.status, replayed(first)) == (201, False)
    for _ in range(2):
        second = again.post("/classes/Game", {"score": 1})
        assert (second.status, second.json, replayed(second)) == (201, first.json, True)
        assert second.headers["Location"] == first.headers["Location"]
    assert len(master.results("Game")) == 1


def test_changes_and_removals_are_carried_out_once(master, game):
    for _ in range(3):
        assert with_id(master, "an-increment").put(game, INCREMENT).json["score"] == 1
    assert score(game) == 1
    for _ in range(3):
        assert with_id(master, "a-removal").delete(game).json == {}
    assert master.delete(game).error == (404, 101)


def test_other_ids_are_other_requests_and_none_is_none(master, game):
    for name in ("first-id", "second-id"):
        with_id(master, name).put(game, INCREMENT)
    for _ in range(2):
        master.put(game, INCREMENT)
        with_id(master, "").put(game, INCREMENT)
    assert score(game) == 6
    assert KeptAnswer.objects.count() == 2


@pytest.mark.parametrize("allowed", [True, False])
def test_parses_header_counts_where_its_headers_do(master, game, settings, allowed):
    setting(settings, PARSE_HEADERS=allowed)
    for _ in range(2):
        with_id(master, header="X-Parse-Request-Id").put(game, INCREMENT)
    assert score(game) == (1 if allowed else 2)


def test_an_sdks_post_with_the_method_in_its_body_is_what_it_stands_for(master, game):
    api = with_id(Api({}))
    keys = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key"}
    for _ in range(2):
        assert api.post(game, {**INCREMENT, "_method": "PUT", **keys}).json["score"] == 1
        assert api.post(game, {"_method": "GET", **keys}).json["score"] == 1
        assert with_id(master).put(game, INCREMENT).json["score"] == 1


def test_the_order_of_keys_makes_no_other_request(master):
    response = with_id(master).call("POST", "/classes/Game", raw=b'{"a": 1, "b": {"c": 2, "d": 3}}')
    other = with_id(master).call("POST", "/classes/Game", raw=b'{"b":{"d":3,"c":2},"a":1}')
    assert response.json == other.json


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/classes/Game", {"score": 2}),
        ("POST", "/classes/Game", {}),
        ("POST", "/classes/Game", {"score": 1, "more": None}),
        ("POST", "/classes/Other", {"score": 1}),
        ("POST", "/classes/Game?x=1", {"score": 1}),
        ("PUT", "/classes/Game/{id}", {"score": 1}),
        ("DELETE", "/classes/Game/{id}", None),
    ],
)
def test_an_id_that_another_request_has_is_refused(master, method, path, body):
    object_id = with_id(master).post("/classes/Game", {"score": 1}).json["objectId"]
    reply = with_id(master).call(method, path.format(id=object_id), body)
    assert reply.error == (400, 159)
    assert reply.json["error"] == "Duplicate request"
    assert [game["score"] for game in master.results("Game")] == [1]


def test_callers_dont_meet_in_their_ids(master, game):
    ann, bob = sign_up("ann"), sign_up("bob")
    device = Api({**CLIENT, "X-Svc-Installation-Id": "a-device"})
    for api in (master, Api(CLIENT), ann, bob, device):
        for _ in range(2):
            with_id(api).put(game, INCREMENT)
    assert score(game) == 5
    assert with_id(Api(READ_ONLY)).put(game, INCREMENT).error == (400, 119)


def test_who_may_not_be_answered_any_more_is_not(master):
    ann = sign_up("ann")
    note = with_id(ann).post("/classes/_User", {"username": "x", "password": "y"})
    assert note.status == 201
    ann.post("/logout")
    again = with_id(ann).post("/classes/_User", {"username": "x", "password": "y"})
    assert again.error == (400, 209)


def test_a_failure_that_left_nothing_behind_is_not_kept(client, master):
    again = with_id(client)
    assert again.post("/classes/Game", {"score": 1}).error == (400, 119)
    master.make("Game", score=0)
    assert again.post("/classes/Game", {"score": 1}).status == 201
    assert replayed(again.post("/classes/Game", {"score": 1}))
    assert len(master.results("Game")) == 2


def test_the_session_token_of_a_sign_up_is_given_again_and_not_readable_in_the_table(client):
    body = {"username": "ann", "password": PASSWORD}
    first, second = (with_id(client).post("/users", body) for _ in range(2))
    assert first.status == second.status == 201
    assert first.json == second.json
    token = second.json["sessionToken"]
    assert Api({**CLIENT, "X-Svc-Session-Token": token}).get("/users/me").status == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(o)::text FROM objects_kept_answer o")
        (row,) = cursor.fetchall()
    for secret in (token, token[2:], PASSWORD, FIRST, "ann"):
        assert secret not in row[0]
    with_id(client).post("/users", {**body, "password": "another guess"})
    assert len(Api(MASTER).results("_User")) == 1


def test_signing_in_makes_a_session_each_time(client):
    sign_up("ann")
    tokens = {log_in("ann", **{"X-Svc-Request-Id": FIRST}).json["sessionToken"] for _ in range(2)}
    assert len(tokens) == 2


def batch(game: str, **more):
    missing = {"method": "PUT", "path": "/api/classes/Game/missing", "body": INCREMENT}
    items = [{"method": "PUT", "path": f"/api{game}", "body": INCREMENT}]
    return {"requests": items if more else [*items, missing, *items], **more}


def test_a_batch_is_carried_out_once_with_its_failures(master, game):
    first, second = (with_id(master).post("/batch", batch(game)) for _ in range(2))
    assert [next(iter(item)) for item in first.json] == ["success", "error", "success"]
    assert (second.json, replayed(second)) == (first.json, True)
    assert score(game) == 2


def test_a_transaction_is_carried_out_once(master, game):
    for _ in range(2):
        reply = with_id(master).post("/batch", batch(game, transaction=True))
        assert reply.json[0]["success"]["score"] == 1
    assert score(game) == 1


def test_items_of_a_batch_have_no_ids_of_their_own(master, game):
    with_id(master, "the-batch").post("/batch", batch(game))
    assert KeptAnswer.objects.count() == 1


def test_a_batch_that_only_reads_is_not_kept(master, game):
    look = {"requests": [{"method": "GET", "path": f"/api{game}"}]}
    with_id(master).post("/batch", look)
    assert not replayed(with_id(master).post("/batch", look))
    assert not KeptAnswer.objects.exists()


def test_a_batch_that_can_not_be_read_is_refused_as_without_an_id(master):
    assert with_id(master).post("/batch", {"requests": 1}).error == (400, 107)
    assert with_id(master).post("/batch", {"requests": []}).json == []


def test_items_that_fail_undo_nothing_of_the_others(master, game):
    """Also neighbours that one statement would store together."""
    master.post("/schemas/Unique", {"fields": {"name": {"type": "String", "required": True}}})
    fields = ({"name": "a"}, {"name": 1}, {"name": "b"}, {}, {"name": "c"})
    requests = [
        {"method": "POST", "path": "/api/classes/Unique", "body": entry} for entry in fields
    ]
    first, second = (with_id(master).post("/batch", {"requests": requests}) for _ in range(2))
    assert [next(iter(item)) for item in first.json] == [
        *("success", "error", "success", "error", "success")
    ]
    assert second.json == first.json
    assert sorted(entry["name"] for entry in master.results("Unique")) == ["a", "b", "c"]


def test_a_schema_is_changed_once(master):
    body = {"fields": {"score": {"type": "Number"}}, "indexes": {"by_score": {"score": 1}}}
    first, second = (with_id(master).post("/schemas/Fresh", body) for _ in range(2))
    assert first.status == 200
    assert second.json == first.json


def test_a_failure_is_kept_where_the_work_can_not_be_undone(master):
    assert with_id(master).post("/schemas/Game", {"fields": {"a b": {}}}).status == 400
    master.post("/schemas/Game", {})
    again = with_id(master).post("/schemas/Game", {"fields": {"a b": {}}})
    assert again.status == 400
    assert replayed(again)


def test_a_file_is_uploaded_once(master):
    api = with_id(master)
    first, second = (
        api.call("POST", "/files/a.txt", raw=b"hello", content_type="text/plain") for _ in range(2)
    )
    assert first.status == 201
    assert (second.status, second.json, replayed(second)) == (201, first.json, True)
    assert second.headers["Location"] == first.headers["Location"]
    other = api.call("POST", "/files/a.txt", raw=b"hallo", content_type="text/plain")
    assert other.error == (400, 159)
    for _ in range(2):
        assert with_id(master, "remove").delete(f"/files/{first.json['name']}").status == 200


def test_an_answer_counts_until_its_time_is_over_and_is_removed_then(master, game, settings):
    setting(settings, IDEMPOTENCY_TTL=60)
    with_id(master).put(game, INCREMENT)
    row = KeptAnswer.objects.get()
    assert timedelta(seconds=50) < row.expires_at - timezone.now() <= timedelta(seconds=60)
    remove_expired()
    assert KeptAnswer.objects.exists()
    KeptAnswer.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not replayed(with_id(master).put(game, INCREMENT))
    assert score(game) == 2
    KeptAnswer.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    remove_expired()
    assert not KeptAnswer.objects.exists()


def test_where_requested_a_repeated_request_is_refused_as_by_parse(master, game, settings):
    setting(settings, IDEMPOTENCY_MODE="reject")
    assert with_id(master).put(game, INCREMENT).status == 200
    for body in (INCREMENT, {"score": 7}):
        reply = with_id(master).put(game, body)
        assert reply.error == (400, 159)
        assert reply.json["error"] == "Duplicate request"
    assert score(game) == 1
    assert KeptAnswer.objects.get().answer is None


def test_a_purge_forgets_ids(master, client, game):
    with_id(master).put(game, INCREMENT)
    assert client.delete("/purge/_Idempotency").error == (403, 119)
    assert KeptAnswer.objects.exists()
    assert master.delete("/purge/_Idempotency").status == 200
    with_id(master).put(game, INCREMENT)
    assert score(game) == 2


def test_in_this_mode_a_request_that_failed_may_be_sent_again(master, game, settings):
    setting(settings, IDEMPOTENCY_MODE="reject")
    assert with_id(master).put(game, {"score": "text"}).error == (400, 111)
    assert with_id(master).put(game, INCREMENT).status == 200
    assert with_id(master).put(game, INCREMENT).error == (400, 159)
    assert score(game) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"IDEMPOTENCY_MODE": "off"}, 2),
        ({"IDEMPOTENCY_PATHS": ("functions/.*", "users")}, 2),
        ({"IDEMPOTENCY_PATHS": ("users", "classes/.*")}, 1),
    ],
)
def test_it_can_be_off_or_hold_for_some_paths(master, game, settings, values, expected):
    setting(settings, **values)
    for _ in range(2):
        with_id(master).put(game, INCREMENT)
    assert score(game) == expected


@pytest.mark.parametrize("request_id", ["x" * 129, "a b", "\u00fc"])
def test_an_id_that_is_none_is_refused(master, game, request_id):
    assert with_id(master, request_id).put(game, INCREMENT).error == (400, 162)
    assert with_id(master, request_id).get(game).json["score"] == 0


def test_of_an_answer_that_is_too_large_is_known_that_it_was_given(master, game):
    master.put(game, {"text": "x" * 300_000})
    look = {"method": "GET", "path": f"/api{game}"}
    requests = {"requests": [*batch(game)["requests"], look]}
    assert with_id(master).post("/batch", requests).status == 200
    again = with_id(master).post("/batch", requests)
    assert again.error == (400, 159)
    assert "wasn't kept" in again.json["error"]
    assert score(game) == 2


def test_a_new_secret_key_reads_what_was_kept_under_the_former_one(master, game, settings):
    former = settings.SECRET_KEY
    with_id(master).put(game, INCREMENT)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [former]
    assert replayed(with_id(master).put(game, INCREMENT))
    settings.SECRET_KEY_FALLBACKS = []
    assert with_id(master).put(game, INCREMENT).error == (400, 159)
    assert score(game) == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("IDEMPOTENCY_MODE", "sometimes", "IDEMPOTENCY_MODE must be one of off, replay, reject"),
        ("IDEMPOTENCY_PATHS", "functions/(", "IDEMPOTENCY_PATHS must list regular expressions"),
        ("IDEMPOTENCY_TTL", "0", "IDEMPOTENCY_TTL must be between 1 and"),
    ],
)
def test_a_setting_that_makes_no_sense_ends_the_process(name, value, message):
    done = subprocess.run(
        [sys.executable, "-c", "from backend.settings import django as settings"],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr


# -- At the same moment ---------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["PUT", "batch", "transaction"])
def test_requests_at_the_same_moment_are_one(kind):
    game = f"/classes/Game/{Api(MASTER).make('Game', score=0)}"
    body = batch(game, transaction=True) if kind == "transaction" else batch(game)
    api = with_id(Api(MASTER))
    send = partial(api.put, game, INCREMENT) if kind == "PUT" else partial(api.post, "/batch", body)
    replies = at_once([send] * 12)
    assert {json.dumps(reply.json) for reply in replies} == {json.dumps(replies[0].json)}
    assert sum(not replayed(reply) for reply in replies) == 1
    assert score(game) == (2 if kind == "batch" else 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["PUT", "batch"])
def test_where_they_are_rejected_one_of_them_is_carried_out(settings, kind):
    setting(settings, IDEMPOTENCY_MODE="reject")
    game = f"/classes/Game/{Api(MASTER).make('Game', score=0)}"
    api = with_id(Api(MASTER))
    send = {
        "PUT": partial(api.put, game, INCREMENT),
        "batch": partial(api.post, "/batch", batch(game)),
    }[kind]
    replies = at_once([send] * 12)
    assert sorted(reply.status for reply in replies) == [200] + [400] * 11
    assert {reply.json["code"] for reply in replies if reply.status == 400} == {159}
    assert score(game) == (2 if kind == "batch" else 1)


@pytest.mark.django_db(transaction=True)
def test_sign_ups_at_the_same_moment_are_one_user():
    body = {"username": "ann", "password": PASSWORD}
    replies = at_once([partial(with_id(Api(CLIENT)).post, "/users", body)] * 6)
    assert {reply.json["sessionToken"] for reply in replies} == {replies[0].json["sessionToken"]}
    assert len(Api(MASTER).results("_User")) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["PUT", "batch"])
def test_who_has_waited_long_enough_has_to_try_again(kind):
    game = f"/classes/Game/{Api(MASTER).make('Game', score=0)}"
    api = with_id(Api(MASTER))
    send = (
        partial(api.put, game, INCREMENT)
        if kind == "PUT"
        else partial(api.post, "/batch", batch(game))
    )
    first = threading.Thread(target=_closing(send))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM objects_object FOR UPDATE")
        first.start()
        wait_until_somebody_waits_for_us()
        second = at_once([partial(_impatient, send)])[0]
    first.join(30)
    assert second.error == (400, 159)
    assert second.headers["Retry-After"] == "1"
    assert replayed(send())
    assert score(game) == (1 if kind == "PUT" else 2)


def _closing(action):
    def run():
        try:
            action()
        finally:
            connection.close()

    return run


def _impatient(send):
    """Send with a connection that waits for locks a tenth of a second only."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout TO '100ms'")
    return send()
