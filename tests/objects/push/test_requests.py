"""``POST /push``: who may send, what is refused, and the status that is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import md5
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import MasterKeyRequired, OperationForbidden, PushMisconfigured
from backend.kernel.principal import CLIENT, READ_ONLY_MASTER
from objects.push import service as pushes
from objects.push.expansion import decode_request, encode_request
from objects.push.models import Push
from objects.push.requests import is_badge, parse_push
from tests.objects.push.pushing import push, status
from tests.people import sign_up
from tests.rest import Api

pytestmark = pytest.mark.django_db


def refusal(api: Api, **body: Any) -> tuple[int, str]:
    reply = api.post("/push", body)
    assert reply.status == 400, reply.json
    return reply.json["code"], reply.json["error"]


def test_only_the_master_key_sends(client: Api, reader: Api, application: Api) -> None:
    body = {"where": {}, "data": {"alert": "x"}}
    for api in (client, application, sign_up("ann")):
        reply = api.post("/push", body)
        assert reply.error == (403, 119)
        assert reply.json["error"] == "unauthorized: master key is required"
    reply = reader.post("/push", body)
    assert reply.error == (400, 119)
    assert reply.json["error"].startswith("read-only masterKey isn't allowed to send push")
    assert not Push.objects.exists()


def test_server_code_has_the_same_rights() -> None:
    with pytest.raises(MasterKeyRequired):
        pushes.send(CLIENT, {"where": {}})
    with pytest.raises(OperationForbidden):
        pushes.send(READ_ONLY_MASTER, {"where": {}})


def test_the_query_is_where_or_channels(master: Api) -> None:
    assert refusal(master, data={"alert": "x"}) == (
        115,
        'Sending a push requires either "channels" or a "where" query.',
    )
    assert refusal(master, where={}, channels=["a"]) == (
        115,
        "Channels and query can not be set at the same time.",
    )


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("expiration_time", "soon", "soon is not valid time."),
        ("expiration_time", None, "null is not valid time."),
        ("expiration_time", True, "true is not valid time."),
        ("expiration_time", {"iso": "2030"}, "[object Object] is not valid time."),
        ("expiration_time", 1e300, "1e+300 is not valid time."),
        ("expiration_time", 253402300799.9999, "253402300799.9999 is not valid time."),
        ("expiration_time", -62135596800, "-62135596800 is not valid time."),
        ("expiration_time", [[1], None], "1, is not valid time."),
        ("push_time", 10**400, "1000"),
        ("push_time", "gibberish-time", "gibberish-time is not valid time."),
        ("push_time", "0001-01-01T00:00", "0001-01-01T00:00 is not valid time."),
        ("push_time", "9999-12-31T23:00", "9999-12-31T23:00 is not valid time."),
        ("expiration_interval", 0, "expiration_interval must be a number greater than 0"),
        ("expiration_interval", "60", "expiration_interval must be a number greater than 0"),
        ("expiration_interval", 10**400, "expiration_interval must be a number greater than 0"),
        ("expiration_interval", 1e300, "expiration_interval must be a number greater than 0"),
        ("data", "text", "data must be an object."),
        ("data", {"badge": "many"}, "Invalid value for badge, expected number or"),
        ("data", {"badge": {"__op": "Increment"}}, "Invalid value for badge"),
        ("data", {"badge": {"__op": "Add", "amount": 1}}, "Invalid value for badge"),
        ("data", {"badge": True}, "Invalid value for badge"),
        ("data", {"badge": 1e300}, "Invalid value for badge"),
        ("data", {"badge": 10**400}, "Invalid value for badge"),
        ("data", {"badge": "1e400"}, "Invalid value for badge"),
        ("data", {"badge": {"__op": "Increment", "amount": 10**400}}, "Invalid value for badge"),
        ("data", {"badge": {"__op": 10**400}}, "Invalid value for badge"),
    ],
)
def test_bad_values_are_named(master: Api, field: str, value: Any, text: str) -> None:
    code, error = refusal(master, where={}, **{field: value})
    assert code == 115
    assert error.startswith(text)


def test_an_end_is_a_time_or_an_interval(master: Api) -> None:
    assert refusal(master, where={}, expiration_time=2**31, expiration_interval=5) == (
        115,
        "Both expiration_time and expiration_interval cannot be set",
    )


def test_without_adapters_pushes_are_refused(master: Api, settings: Any) -> None:
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_ADAPTERS": {}}):
        assert refusal(master, where={}) == (115, "Missing push configuration")


def test_the_answer_names_the_status(master: Api) -> None:
    reply = master.post("/push", {"channels": ["news"], "data": {"alert": "Hi"}})
    assert reply.json == {"result": True}
    push_id = reply.headers["X-Svc-Push-Status-Id"]
    assert len(push_id) == 10
    assert reply.headers["X-Parse-Push-Status-Id"] == push_id
    exposed = reply.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"X-Svc-Push-Status-Id", "X-Parse-Push-Status-Id"} <= {*exposed}


def test_a_status_has_parses_fields(master: Api) -> None:
    push_id = push(where={"deviceType": "ios"}, data={"badge": "increment", "alert": "Hello"})
    stored = status(push_id)
    moment = stored.pop("pushTime")
    assert moment[-1] == "Z"
    assert len(moment) == 24
    assert stored.pop("createdAt") == stored.pop("updatedAt")
    assert stored == {
        "objectId": push_id,
        "query": '{"deviceType":"ios"}',
        "payload": '{"badge":"increment","alert":"Hello"}',
        "source": "rest",
        "status": "pending",
        "numSent": 0,
        "pushHash": md5(b"Hello").hexdigest(),
        "ACL": {},
    }


def test_a_hash_is_of_the_alert() -> None:
    empty = status(push(data={}))["pushHash"]
    assert empty == "d41d8cd98f00b204e9800998ecf8427e"
    alert = {"body": "b", "title": "t"}
    assert status(push(data={"alert": alert}))["pushHash"] == (
        md5(b'{"body":"b","title":"t"}').hexdigest()
    )


def test_an_interval_of_a_push_that_is_sent_at_once_is_a_time(master: Api) -> None:
    stored = status(push(expiration_interval=60))
    assert stored["expiration_interval"] == 60
    created = master.get(f"/classes/_PushStatus/{stored['objectId']}").json["createdAt"]
    seconds = stored["expiry"] / 1000 - datetime.fromisoformat(created).timestamp()
    assert abs(seconds - 60) < 2


def test_statuses_are_for_the_master_key(master: Api, client: Api, reader: Api) -> None:
    push_id = push()
    for api in (client, sign_up("ann")):
        for call in (
            lambda api=api: api.get("/classes/_PushStatus"),
            lambda api=api: api.get(f"/classes/_PushStatus/{push_id}"),
            lambda api=api: api.post("/classes/_PushStatus", {"status": "succeeded"}),
            lambda api=api: api.put(f"/classes/_PushStatus/{push_id}", {"status": "failed"}),
            lambda api=api: api.delete(f"/classes/_PushStatus/{push_id}"),
        ):
            assert call().json["code"] == 119
    found = reader.results("_PushStatus", where={"status": "pending"})
    assert [item["objectId"] for item in found] == [push_id]
    assert reader.put(f"/classes/_PushStatus/{push_id}", {"status": "failed"}).json["code"] == 119


_NUMBERS = st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
_TIMES = st.one_of(
    st.sampled_from(["Mon, 01 Jan 0001 00:00:00 +2359", "9998-12-31T23:59:59-23:59", "20200101"]),
    st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat),
    st.floats(-62_135_596_801, 253_402_300_801),
    st.integers(-62_135_596_801, 253_402_300_801),
)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text() | _TIMES,
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=5,
)
_BADGES = st.one_of(
    _VALUES,
    _NUMBERS.map(str),
    st.fixed_dictionaries({"__op": st.just("Increment") | _VALUES, "amount": _VALUES}),
)
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("where", "channels", "title", "audience_id", "notification"), _VALUES),
        **dict.fromkeys(("push_time", "expiration_time"), _TIMES | _VALUES),
        "expiration_interval": st.floats(0, 316_224_000) | _VALUES,
        "data": _VALUES | st.fixed_dictionaries({"badge": _BADGES}, optional={"alert": _VALUES}),
    },
)


@given(body=_BODIES | _BODIES.map(lambda body: {"where": {}, **body}))
def test_any_body_is_a_push_or_refused(body: dict[str, Any]) -> None:
    try:
        request = parse_push(body, datetime.now(UTC))
    except PushMisconfigured:
        return
    assert decode_request(encode_request(request)) == request
    assert request.expires_at is None or datetime.fromtimestamp(request.expires_at / 1000, UTC)
    assert request.push_time is None or datetime.fromisoformat(request.push_time)
    if request.badge is not None:
        for badge in (None, 0, 1.5, 10**400, -(10**999), 1.7e308, "7", True, body):
            assert is_badge(request.badge.after(badge))


def test_a_refused_push_stores_nothing(master: Api) -> None:
    refusal(master, where={}, push_time="never")
    assert master.results("_PushStatus") == []
    assert not Push.objects.exists()
