"""Messages of live queries: read, and their questions parsed, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.core.messages import InvalidMessage, LiveQuery, Subscribe, parse_message
from realtime.livequery.query_parsing import check_class, parse_query
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)
from tests.security.fuzz.test_where import CORPUS as WHERES

CONNECT = {"op": "connect", "applicationId": "a", "restAPIKey": "k", "sessionToken": "r:1"}
CORPUS: list[dict[str, Any]] = [
    CONNECT,
    {"op": "connect", "applicationId": "a", "javascriptKey": "k", "installationId": "i"},
    {"op": "unsubscribe", "requestId": 1},
    {"op": "query", "requestId": 2},
    {
        "op": "update",
        "requestId": 1,
        "query": {"className": "Thing", "where": {"name": "a"}, "fields": ["name", "info.a"]},
    },
    *(
        {
            "op": "subscribe",
            "requestId": 1,
            "sessionToken": "r:abc",
            "query": {"className": "Thing", "where": where, "keys": ["name"], "watch": ["score"]},
        }
        for where in WHERES
    ),
]


def use(text: str) -> None:
    """Read a message, and the question in it."""
    message = parse_message(text)
    if isinstance(message, Subscribe):
        assert isinstance(message.query, LiveQuery)
        check_class(message.query.class_name)
        parse_query(message.query, as_master=False)


def make(mutator: Mutator) -> str:
    text = json.dumps(mutator.json(mutator.sample()), ensure_ascii=bool(mutator.below(2)))
    return text if mutator.below(3) else mutator.text(text)


def subscribing(**query: Any) -> str:
    return json.dumps({"op": "subscribe", "requestId": 1, "query": {"className": "Thing", **query}})


def test_the_examples_are_valid():
    accepts(use, [json.dumps(message) for message in CORPUS])


@EXAMPLES
def test_any_message_is_read_or_refused(examples):
    fuzz(use, make, CORPUS, examples, InvalidMessage)


@pytest.mark.parametrize(
    "grown",
    [
        lambda size: subscribing(where={f"a{number}": number for number in range(size)}),
        lambda size: subscribing(where={}, keys=[f"a{number}" for number in range(size)]),
        lambda size: subscribing(where={}, watch=[f"a{number}" for number in range(size)]),
        lambda size: json.dumps({**CONNECT, **{f"a{number}": 1 for number in range(size)}}),
    ],
    ids=["where", "keys", "watch", "unknown"],
)
def test_work_is_proportional_to_size(grown):
    check_work_is_proportional(use, grown, (20, 80, 320, 1_280), InvalidMessage)


def test_nothing_long_is_remembered():
    for message in (
        lambda text: subscribing(where={"name": text}),
        lambda text: subscribing(where={text: 1}),
        lambda text: subscribing(where={}, keys=[text]),
        lambda text: subscribing(where={}, className=text),
        lambda text: json.dumps({**CONNECT, "applicationId": text}),
        lambda text: json.dumps({"op": text, "requestId": 1}),
    ):
        check_nothing_long_is_remembered(use, message, InvalidMessage)
