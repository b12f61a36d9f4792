"""Theme 5 of the advisories on Parse Server, and theme 4 where it reaches live queries.

A live query shows nothing that a search would not, and nothing that a client sends stops it for
others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from functions import LiveEventRequest, after_event
from functions.runtime.registry import registry
from tests.objects.access.tables import PUBLIC
from tests.people import PASSWORD, User, make_role, sign_up
from tests.rest import Api
from tests.security.hostile import TEXTS
from tests.subscribers import KEYS, MASTER_KEYS, Realtime, Subscriber, realtime_process

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]

LAST = "last"


@pytest.fixture
def realtime(db: None) -> Iterator[Realtime]:
    with registry.temporarily(), realtime_process() as process:
        yield process


@pytest.fixture
def ann(db: None) -> User:
    return sign_up("ann")


def permit(master: Api, class_name: str = "Game", **permissions: Any) -> None:
    body = {"classLevelPermissions": permissions}
    assert master.put(f"/schemas/{class_name}", body).status == 200


Watching = Callable[..., Subscriber]


@pytest.fixture
def watching(realtime: Realtime, master: Api) -> Watching:
    """Makes a client that gets games from now on, and the object that ends a test."""
    master.make("Last", name="first")
    probe = realtime.subscriber()
    probe.subscribe(0, "Last")

    def connect(user: User | None = None, **more: Any) -> Subscriber:
        # What was committed before is read before.
        master.make("Last", name="settled")
        probe.until("settled")
        subscriber = realtime.subscriber(user, **more)
        subscriber.subscribe(0, "Last")
        subscriber.subscribe(1, "Game")
        return subscriber

    return connect


def notifications_of(master: Api, *subscribers: Subscriber) -> list[list[dict[str, Any]]]:
    """What each has received of games since."""
    master.make("Last", name=LAST)
    return [
        [message for message in subscriber.until(LAST) if message["requestId"] != 0]
        for subscriber in subscribers
    ]


# -- Class-level permissions (7ch5-98q2-7289), pointer permissions (fph2-r4qg-9576) ---------------


def test_a_live_query_is_a_search_to_the_permissions_of_its_class(
    master, realtime, watching, ann, game
):
    permit(master, **PUBLIC | {"find": {}})
    for item in (realtime.subscriber(), realtime.subscriber(ann)):
        answer = item.ask(1, "Game")
        assert (answer["op"], answer["code"], answer["requestId"]) == ("error", 119, 1)
        assert answer["reconnect"] is False


def test_permissions_that_are_taken_away_end_what_they_allowed(
    master, realtime, watching, ann, game
):
    item, key = watching(ann), watching(**MASTER_KEYS)
    permit(master, **PUBLIC | {"find": {"role:Team": True}})
    master.put(f"/classes/Game/{game}", {"name": "unseen"})
    (ended,), (observed,) = notifications_of(master, item, key)
    assert (ended["op"], ended["code"], ended["requestId"]) == ("error", 119, 1)
    assert observed["op"] == "update"
    assert "unseen" not in str(ended)


def test_pointers_decide_who_is_notified(master, realtime, watching, ann, game):
    bob = sign_up("bob")
    master.put(f"/classes/Game/{game}", {"player": ann.pointer})
    permit(master, **PUBLIC | {"find": {"pointerFields": ["player"]}})
    subscribers = [watching(who) for who in (ann, bob, None)]
    for player in (ann, bob):
        master.put(f"/classes/Game/{game}", {"player": player.pointer, "score": 2})
    ours, theirs, nobodys = notifications_of(master, *subscribers)
    assert [message["op"] for message in ours] == ["update", "leave"]
    assert ours[1]["object"] == {"className": "Game", "objectId": game}
    assert [message["op"] for message in theirs] == ["enter"]
    assert "original" not in theirs[0]
    assert nobodys == []


# -- Access lists (97pr-9hgg-3p8r) ----------------------------------------------------------------


def test_a_change_of_an_access_list_shows_neither_side_the_others_object(
    master, realtime, watching, ann, game
):
    bob = sign_up("bob")
    subscribers = [watching(who) for who in (ann, bob)]
    master.put(f"/classes/Game/{game}", {"name": "anns", "ACL": {ann.user_id: {"read": True}}})
    master.put(f"/classes/Game/{game}", {"name": "bobs", "ACL": {bob.user_id: {"read": True}}})
    ours, theirs = notifications_of(master, *subscribers)
    assert [message["op"] for message in ours] == ["update", "leave"]
    assert "bobs" not in json.dumps(ours)
    assert [message["op"] for message in theirs] == ["leave", "enter"]
    assert "anns" not in json.dumps(theirs)


# -- Identity (9jpp-xhh6-75mf) --------------------------------------------------------------------


def test_what_is_hidden_from_a_group_is_hidden_from_all_of_its_members(
    master, realtime, watching, ann, game
):
    """Also from a member by another role, and by the subscription's own session."""
    inner = make_role(master, "Inner", [ann])
    make_role(master, "Team", roles=[inner])
    hides = [{"authenticated": ["secret"]}, {"role:Team": ["secret"]}, {ann.user_id: ["secret"]}]
    by_connection = watching(ann)
    by_subscription = realtime.subscriber()
    by_subscription.subscribe(0, "Last")
    by_subscription.subscribe(1, "Game", sessionToken=ann.token)
    stranger = watching()
    for number, protected in enumerate(hides):
        permit(master, **PUBLIC, protectedFields={"*": [], **protected})
        master.put(f"/classes/Game/{game}", {"score": number})
    of_ann, of_session, of_stranger = notifications_of(
        master, by_connection, by_subscription, stranger
    )
    for message in (*of_ann, *of_session):
        assert message["object"]["score"] in range(3)
        assert "secret" in message["object"], "* hides nothing, and what all groups hide is hidden"
    assert len(of_stranger) == 3
    for number, protected in enumerate(hides):
        permit(master, **PUBLIC, protectedFields={**protected})
        master.put(f"/classes/Game/{game}", {"score": number})
    of_ann, of_session, of_stranger = notifications_of(
        master, by_connection, by_subscription, stranger
    )
    for messages in (of_ann, of_session):
        assert [("secret" in m["object"], "secret" in m["original"]) for m in messages] == (
            [(False, False)] * 3
        )
    assert [("secret" in m["object"]) for m in of_stranger] == [True] * 3


def test_a_session_that_is_none_is_never_taken_for_an_anonymous_one(realtime, game):
    other = realtime.subscriber()
    for token in ("r:" + "0" * 32, " ", "null", "x" * 400):
        client = realtime.subscriber(**KEYS, sessionToken=token)
        for own in ({}, {"sessionToken": ""}, {"sessionToken": token}):
            answer = client.ask(1, "Game", **own)
            assert (answer["op"], answer["code"]) == ("error", 209), (token, own)
        answer = other.ask(1, "Game", sessionToken=token)
        assert (answer["op"], answer["code"]) == ("error", 209), token


def test_an_empty_session_has_the_rights_of_a_stranger(master, realtime, ann, game):
    # The SDK for Apple's systems sends it where nobody has logged in.
    master.put(f"/classes/Game/{game}", {"ACL": {ann.user_id: {"read": True}}, "score": 1})
    stranger = realtime.subscriber(**KEYS, sessionToken="")
    assert stranger.ask(1, "Game", sessionToken="")["op"] == "subscribed"
    assert stranger.ask(2, "_Session", sessionToken="")["code"] == 209
    master.put(f"/classes/Game/{game}", {"score": 2})
    master.put(f"/classes/Game/{game}", {"score": 3, "ACL": {"*": {"read": True}}})
    event = stranger.next()
    assert (event["op"], event["object"]["score"]) == ("enter", 3)
    assert "original" not in event


def test_a_role_that_is_taken_away_shows_nothing_any_more(master, realtime, watching, ann, game):
    role = make_role(master, "Team", [ann])
    master.put(f"/classes/Game/{game}", {"ACL": {"role:Team": {"read": True}}})
    changes = watching(ann)
    master.put(f"/classes/Game/{game}", {"name": "seen"})
    # What a reading says of roles counts for all of it, so it is read before.
    (messages,) = notifications_of(master, changes)
    assert [message["object"]["name"] for message in messages] == ["seen"]
    gone = {"__op": "RemoveRelation", "objects": [ann.pointer]}
    assert master.put(f"/roles/{role}", {"users": gone}).status == 200
    master.put(f"/classes/Game/{game}", {"name": "unseen"})
    (messages,) = notifications_of(master, changes)
    assert messages == []
    joined = {"__op": "AddRelation", "objects": [ann.pointer]}
    assert master.put(f"/roles/{role}", {"users": joined}).status == 200
    master.put(f"/classes/Game/{game}", {"name": "seen again"})
    (messages,) = notifications_of(master, changes)
    assert [message["object"]["name"] for message in messages] == ["seen again"]


# -- Sessions -------------------------------------------------------------------------------------


def log_out(master: Api, ann: User) -> None:
    assert ann.post("/logout").status == 200


def new_password(master: Api, ann: User) -> None:
    assert master.put(f"/users/{ann.user_id}", {"password": f"another {PASSWORD}"}).status == 200


def end_of_the_account(master: Api, ann: User) -> None:
    assert master.delete(f"/users/{ann.user_id}").status == 200


def removal_of_the_session(master: Api, ann: User) -> None:
    (session,) = ann.results("_Session")
    assert master.delete(f"/sessions/{session['objectId']}").status == 200


def revocation_by_staff(master: Api, ann: User) -> None:
    from objects.users.sessions import tokens

    tokens.end_all_of(ann.user_id)


def expiry(master: Api, ann: User) -> None:
    from objects.database.statements import fetch

    fetch(
        'UPDATE objects_session SET expires_at = statement_timestamp() WHERE "user" = %s',
        (ann.user_id,),
        prepare=False,
    )


ENDS = (
    log_out,
    new_password,
    end_of_the_account,
    removal_of_the_session,
    revocation_by_staff,
    expiry,
)


def test_nothing_is_shown_to_a_session_that_has_ended(master, realtime, game):
    stays = realtime.subscriber()
    stays.subscribe(1, "Game")
    for number, ends in enumerate(ENDS):
        user = sign_up(f"user{number}")
        by_connection, by_subscription = realtime.subscriber(user), realtime.subscriber()
        by_connection.subscribe(1, "Game")
        by_subscription.subscribe(1, "Game", sessionToken=user.token)
        by_subscription.subscribe(2, "Game")
        ends(master, user)
        master.put(f"/classes/Game/{game}", {"name": "after the end"})
        for item in (by_connection, by_subscription):
            ended = item.next()
            assert (ended["op"], ended["requestId"]) == ("error", 1), (ends.__name__, ended)
            assert (ended["code"], ended["reconnect"]) == (209, False), ends.__name__
        for item, request_id in ((by_subscription, 2), (stays, 1)):
            message = item.next()
            assert (message["op"], message["requestId"]) == ("update", request_id), ends.__name__
        # The connection is there, and its session isn't.
        answer = by_connection.ask(2, "Game")
        assert (answer["op"], answer["code"]) == ("error", 209), ends.__name__


# -- Protected fields (theme 4: j7mm-f4rv-6q6q, mmg8-87c5-jrc2, qpc3-fg4j-8hgm, crrq-vr9j-fxxh) ----

_SECRET = {"secret.word": "s"}


QUESTIONS: list[dict[str, Any]] = [
    {"where": {"secret": {"word": "s"}}},
    {"where": _SECRET},
    {"where": {"secret.word": {"$regex": "^s"}}},
    {"where": {"$or": [{"name": "x"}, _SECRET]}},
    {"where": {"$and": [{"$or": [{"$and": [_SECRET]}]}]}},
    {"where": {"$nor": [_SECRET]}},
    {"where": {"$or": {"0": _SECRET, "length": 1}}},
    {"where": {"$and": {"0": _SECRET, "length": 1}}},
    {"where": {"$text": {"$search": {"$term": "s"}}}},
    {"where": {}, "watch": ["secret"]},
    {"where": {}, "watch": ["name", "secret.word"]},
]


def test_a_live_query_is_no_oracle_for_protected_fields(master, realtime, game):
    permit(master, **PUBLIC, protectedFields={"*": ["secret"]})
    subscriber = realtime.subscriber()
    for query in QUESTIONS:
        for op in ("subscribe", "update"):
            answer = subscriber.ask(1, "Game", op=op, **query)
            assert answer["op"] == "error", query
            assert answer["code"] in (102, 119), (query, answer)


def test_asking_for_a_protected_field_alone_shows_it_no_more(master, realtime, game):
    permit(master, **PUBLIC, protectedFields={"*": ["secret"]})
    subscriber = realtime.subscriber()
    subscriber.subscribe(1, "Game", keys=["secret", "name"])
    subscriber.subscribe(2, "Game", fields=["secret"])
    master.put(f"/classes/Game/{game}", {"name": "new"})
    for _ in range(2):
        message = subscriber.next()
        assert "secret" not in message["object"].keys() | message["original"].keys()


# -- Triggers (5hmj-jcgp-6hff), shared state (m983-v2ff-wq65) -------------------------------------


def test_no_trigger_leaks_what_is_hidden_and_no_subscriber_what_another_sees(
    master, realtime, watching, ann, game
):
    permit(master, **PUBLIC, protectedFields={"*": ["secret"], "authenticated": []})

    @after_event("Game")
    def note(request: LiveEventRequest) -> None:
        request.object["for"] = request.user_id
        request.object["seen"] = [*request.object.get("seen", []), 1]
        request.object.setdefault("info", {})["who"] = request.user_id
        request.original["was"] = True

    people = [ann, None, ann, None]
    subscribers = [watching(who) for who in people]
    for number in range(5):
        master.put(f"/classes/Game/{game}", {"score": number})
    for who, item in zip(people, subscribers, strict=True):
        messages = [told_next(item) for _ in range(5)]
        for number, message in enumerate(messages):
            obj, original = message["object"], message["original"]
            assert (obj["score"], obj["seen"], original["was"]) == (number, [1], True)
            assert "for" not in original
            assert (
                obj.get("for") == obj["info"].get("who") == (None if who is None else ann.user_id)
            )
            assert ("secret" in obj, "secret" in original) == ((who is not None,) * 2)


def told_next(item: Subscriber) -> dict[str, Any]:
    """The next message about a game. What triggers see first may come after others."""
    while True:
        message = item.next()
        if message["requestId"] == 1:
            return message


def test_what_one_subscriber_may_not_see_is_there_for_the_next(
    master, realtime, watching, ann, game
):
    permit(master, **PUBLIC, protectedFields={"*": ["secret"], "authenticated": []})
    people = [None, ann, None, ann, None]
    subscribers = [watching(who) for who in people]
    for number in range(20):
        master.put(f"/classes/Game/{game}", {"score": number})
    for who, messages in zip(people, notifications_of(master, *subscribers), strict=True):
        assert [message["object"]["score"] for message in messages] == list(range(20))
        for message in messages:
            assert ("secret" in message["object"]) == (who is not None)
            assert ("secret" in message["original"]) == (who is not None)


# -- What hangs or crashes (mf3j-86qx-cq5j, 827p-g5x5-h86c, 6qh5-m6g3-xhq6, 9xp9-j92r-p88v) -------


_SUBSCRIBE = '{"op":"subscribe","requestId":1,"query":{"className":"Game","where":'
NO_QUESTIONS: list[Any] = [
    {"name": {"$regex": "("}},
    {"name": {"$regex": "[z-a]"}},
    {"name": {"$regex": "a", "$options": "q"}},
    {"name": {"$regex": {"a": 1}}},
    {"name": {"$regex": "a" * 100_000}},
    {"$or": [{"name": {"$regex": "*"}}]},
    {"tags": {"$all": [{"$regex": "("}]}},
    '{"$or":[' * 500 + '{"a":1}' + "]}" * 500,
    '{"$nor":[' * 100 + '{"a":1}' + "]}" * 100,
    '{"a":' * 500 + "1" + "}" * 500,
    '{"a":{"$in":' + "[" * 500 + "]" * 500 + "}}",
    {"$or": 1},
    {"$where": "sleep(1000)"},
    {"a": {"$where": "1"}},
    {"__proto__": {"a": 1}},
    {"name\x00": 1},
    {"a": {"$gt": None}},
]


def test_what_is_no_question_is_refused_and_no_other_caller_notices(master, realtime, game):
    item, other = realtime.subscriber(), realtime.subscriber()
    other.subscribe(1, "Game")
    for number, where in enumerate(NO_QUESTIONS):
        text = where if isinstance(where, str) else json.dumps(where)
        item.say_text(f"{_SUBSCRIBE}{text}}}}}")
        answer = item.next()
        assert answer["op"] == "error", (text[:80], answer)
        assert answer["code"] in range(1, 200), (text[:80], answer)
        item.subscribe(2, "Game", op="update")
        master.put(f"/classes/Game/{game}", {"score": number})
        assert item.next()["requestId"] == 2
        assert other.next()["requestId"] == 1


PATTERNS = ("^(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){25}", "^(([a-z])+.)+[A-Z]([a-z])+$")


def test_no_pattern_holds_up_the_others(master, realtime, game):
    item, other = realtime.subscriber(), realtime.subscriber()
    for number, pattern in enumerate(PATTERNS):
        assert item.ask(number, "Game", {"name": {"$regex": pattern}})["op"] in (
            "subscribed",
            "error",
        )
    other.subscribe(1, "Game")
    master.put(f"/classes/Game/{game}", {"name": "a" * 50_000 + "!"})
    assert other.next()["op"] == "update"


NO_MESSAGES = (
    "[" * 2_000,
    _SUBSCRIBE + '{"a":' * 300 + "1" + "}" * 302,
    '{"op":"subscribe","requestId":1}',
    '{"op":"subscribe","requestId":{"$gt":0},"query":{"className":"Game","where":{}}}',
    '{"op":"subscribe","requestId":1,"query":{"className":["Game"],"where":{}}}',
    _SUBSCRIBE + '{},"x":1}}',
    _SUBSCRIBE + '{}},"sessionToken":{"$ne":1}}',
    '{"op":"__proto__","requestId":1}',
    '{"op":"connect","applicationId":"test-app","masterKey":{"$ne":1}}',
    "null",
)


def test_text_that_is_not_a_message_is_rejected(realtime, game):
    for text in NO_MESSAGES:
        subscriber = realtime.subscriber()
        subscriber.say_text(text)
        answer = subscriber.next()
        assert (answer["op"], answer["code"] in range(1, 200)) == ("error", True), text[:80]
        subscriber.subscribe(2, "Game")


def test_no_text_in_a_message_is_more_than_text(master, realtime, watching, game):
    """Injection (theme 3) by way of a live query: an answer each, and never a fault of ours."""
    other = watching()
    for text in TEXTS:
        where: list[Any] = [
            {text: 1},
            {f"info.{text}": 1},
            {"name": text},
            {"name": {text: 1}},
            {"name": {"$in": [text, {"a": text}]}},
            {"name": {"$regex": text}},
            {"$text": {"$search": {"$term": text}}},
            {"createdAt": {"$gt": {"$relativeTime": text}}},
            {"owner": {"__type": "Pointer", "className": text, "objectId": text}},
        ]
        queries = [{"where": item} for item in where]
        queries += [{"where": {}, name: [text]} for name in ("keys", "fields", "watch")]
        queries.append({"where": {}, "class_name": text})
        item = realtime.subscriber(installationId=text[:100])
        for number, query in enumerate(queries):
            class_name = query.pop("class_name", "Game")
            answer = item.ask(number, class_name, **query)
            assert answer["op"] in ("subscribed", "error"), (query, answer)
            assert "Internal" not in answer.get("error", ""), (query, answer)
        assert item.ask(99, "Game", sessionToken=text[:500])["code"] == 209
        item.close()
    master.put(f"/classes/Game/{game}", {"name": TEXTS[0]})
    (messages,) = notifications_of(master, other)
    assert [message["op"] for message in messages] == ["update"]
