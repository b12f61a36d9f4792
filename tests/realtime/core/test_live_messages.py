"""The messages of live queries are read strictly, and written as SDKs read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.core import messages
from realtime.core.messages import (
    MALFORMED,
    UNKNOWN_OP,
    Connect,
    Fetch,
    InvalidMessage,
    Subscribe,
    Unsubscribe,
    parse_message,
)


def parsed(message: Any) -> Any:
    return parse_message(json.dumps(message))


def refused(message: Any) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as caught:
        parse_message(message if isinstance(message, str) else json.dumps(message))
    return caught.value


CONNECT = {"op": "connect", "applicationId": "app"}
QUERY = {"className": "Game", "where": {"score": {"$gt": 5}}}
SUBSCRIBE = {"op": "subscribe", "requestId": 1, "query": QUERY}


def test_a_client_connects_with_any_of_the_keys():
    keys = ("restAPIKey", "javascriptKey", "clientKey", "windowsKey", "masterKey")
    for key in (*keys, "sessionToken", "installationId"):
        message = parsed({**CONNECT, key: "value"})
        assert isinstance(message, Connect)
        assert "value" in [getattr(message, name) for name in message.__struct_fields__]


def test_the_keys_of_a_connect_message_are_not_printed():
    message = parsed({**CONNECT, "masterKey": "secret", "sessionToken": "r:secret"})
    assert "secret" not in repr(message)
    assert "r:secret" not in repr(parsed({**SUBSCRIBE, "sessionToken": "r:secret"}))


def test_subscribe_update_query_and_unsubscribe_are_parsed():
    message = parsed({**SUBSCRIBE, "sessionToken": "r:1"})
    assert isinstance(message, Subscribe)
    assert (message.request_id, message.query.class_name) == (1, "Game")
    assert message.query.where == {"score": {"$gt": 5}}
    assert message.session_token == "r:1"
    assert parsed({**SUBSCRIBE, "op": "update"}).op == "update"
    assert isinstance(parsed({"op": "unsubscribe", "requestId": 1}), Unsubscribe)
    assert isinstance(parsed({"op": "query", "requestId": 1}), Fetch)


def test_older_sdks_call_keys_fields():
    request = {**QUERY, "fields": ["name"]}
    assert parsed({**SUBSCRIBE, "query": request}).query.selected == ["name"]
    both = {**request, "keys": ["score"]}
    assert parsed({**SUBSCRIBE, "query": both}).query.selected == ["score"]
    assert parsed(SUBSCRIBE).query.selected is None


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"op": "connect"}, "applicationId"),
        ({**CONNECT, "applicationId": 1}, "$.applicationId"),
        ({**CONNECT, "extra": 1}, "extra"),
        ({**CONNECT, "masterKey": "k" * 2000}, "master_key"),
        ({**SUBSCRIBE, "extra": 1}, "extra"),
        ({**SUBSCRIBE, "requestId": "1"}, "$.requestId"),
        ({**SUBSCRIBE, "requestId": 1.5}, "$.requestId"),
        ({**SUBSCRIBE, "requestId": -1}, "requestId"),
        ({**SUBSCRIBE, "requestId": 2**53}, "requestId"),
        ({**SUBSCRIBE, "sessionToken": "r" * 2000}, "sessionToken"),
        ({**SUBSCRIBE, "query": {"className": "Game"}}, "where"),
        ({**SUBSCRIBE, "query": {"where": {}}}, "className"),
        ({**SUBSCRIBE, "query": {**QUERY, "where": []}}, "$.query.where"),
        ({**SUBSCRIBE, "query": {**QUERY, "limit": 1}}, "limit"),
        ({**SUBSCRIBE, "query": {**QUERY, "keys": []}}, "query.keys"),
        ({**SUBSCRIBE, "query": {**QUERY, "keys": ["a", "a"]}}, "query.keys"),
        ({**SUBSCRIBE, "query": {**QUERY, "keys": "a"}}, "$.query.keys"),
        ({**SUBSCRIBE, "query": {**QUERY, "watch": [1]}}, "$.query.watch"),
        ({**SUBSCRIBE, "query": {**QUERY, "watch": ["a"] * 501}}, "query.watch"),
        ({"op": "unsubscribe"}, "requestId"),
    ],
)
def test_an_invalid_message_is_rejected_with_its_place(message, place):
    refusal = refused(message)
    assert refusal.code == MALFORMED
    assert place in refusal.error


def test_an_unknown_key_is_rejected_as_sdks_expect_and_makes_them_reconnect():
    for message in ({**CONNECT, "extra": 1}, {**SUBSCRIBE, "query": {**QUERY, "limit": 1}}):
        refusal = refused(message)
        assert refusal.error.startswith("Additional properties not allowed")
        assert refusal.reconnect
    assert not refused({**SUBSCRIBE, "requestId": "1"}).reconnect


def test_null_is_a_value_that_is_missing():
    keys = ("restAPIKey", "javascriptKey", "clientKey", "windowsKey", "masterKey")
    names = (*keys, "sessionToken", "installationId")
    message = parsed({**CONNECT, **dict.fromkeys(names)})
    assert message == parsed(CONNECT)
    query = {**QUERY, "keys": None, "fields": None, "watch": None}
    assert parsed({**SUBSCRIBE, "query": query, "sessionToken": None}) == parsed(SUBSCRIBE)


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"connect"', "null", '{"op":1}', "\ud800"])
def test_text_that_is_not_a_message_is_rejected(text):
    assert refused(text).code == MALFORMED


def test_a_message_nested_too_deeply_is_rejected():
    for text in ("[" * 100_000, '{"op":' * 50_000):
        assert refused(text).code == MALFORMED
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    text = f'{{"op":"subscribe","requestId":1,"query":{{"className":"A","where":{deep}}}}}'
    assert refused(text).code == MALFORMED


def test_a_rejection_has_the_request_id_if_it_is_known():
    refusal = refused({"op": "publish", "requestId": 7})
    assert (refusal.code, refusal.request_id) == (UNKNOWN_OP, 7)
    assert refused({"op": "subscribe", "requestId": 7}).request_id == 7
    assert refused({"op": "subscribe", "requestId": "7"}).request_id is None


def test_responses_have_the_form_that_sdks_read():
    client = messages.recipient("abc", None)
    assert json.loads(messages.connected(client)) == {"op": "connected", "clientId": "abc"}
    client = messages.recipient("abc", 'in"st')
    message = {"clientId": "abc", "installationId": 'in"st', "requestId": 3}
    assert json.loads(messages.subscribed(client, 3)) == {"op": "subscribed", **message}
    assert json.loads(messages.unsubscribed(client, 3)) == {"op": "unsubscribed", **message}
    assert json.loads(messages.result(client, 3, '{"a":1},{"a":2}')) == {
        "op": "result",
        **message,
        "results": [{"a": 1}, {"a": 2}],
    }


def test_an_event_has_its_objects_after_the_head_of_its_subscription():
    middle = messages.event_middle(messages.recipient("abc", None), 3)
    message = {"clientId": "abc", "requestId": 3}
    body = messages.event_body(b'{"a":1}', None)
    assert json.loads(messages.event("create", middle, body)) == {
        "op": "create",
        **message,
        "object": {"a": 1},
    }
    body = messages.event_body(b'{"a":1}', b'{"a":0}')
    assert json.loads(messages.event("update", middle, body)) == {
        "op": "update",
        **message,
        "object": {"a": 1},
        "original": {"a": 0},
    }


def test_an_error_says_whether_to_reconnect():
    assert json.loads(messages.error(4, 'a "key"', reconnect=False)) == {
        "op": "error",
        "code": 4,
        "error": 'a "key"',
        "reconnect": False,
    }
    error = json.loads(messages.error(101, "gone", reconnect=True, request_id=0))
    assert (error["reconnect"], error["requestId"]) == (True, 0)
