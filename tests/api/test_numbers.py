"""Numbers as they come back: in digits, or with an exponent where they have many zeros."""

from __future__ import annotations

import json

import pytest
from django.test import Client


def stored(api, raw):
    body = f'{{"n": {raw}, "list": [{raw}], "text": "{"0" * 100}.{"0" * 100}"}}'
    reply = api.call("POST", "/classes/Sum", raw=body.encode())
    assert reply.status == 201, reply.json
    return reply.json["objectId"]


def sent(api, path, **params):
    numbers = []

    def noted(text):
        numbers.append(text)
        return float(text)

    response = Client().get(f"{api.mount}{path}", params, headers=api.headers)
    obj = json.loads(response.content, parse_float=noted, parse_int=noted)
    obj = obj["results"][0] if "results" in obj else obj
    assert obj["text"] == f"{'0' * 100}.{'0' * 100}"
    return numbers


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("1e308", "1e+308"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("-2.5e200", "-2.5e+200"),
        ("5e-324", "5e-324"),
        ("-1.25e-300", "-1.25e-300"),
        ("1.0", "1"),
        ("-0.0", "0"),
        ("1e21", "1" + "0" * 21),
        (str(2**256 - 1), str(2**256 - 1)),
        ("1" + "0" * 77, "1" + "0" * 77),
        (str(3**200), str(3**200)),
        ("1" * 20 + "0" * 100, "1" * 20 + "0" * 100),
    ],
)
def test_a_number_comes_back_as_clients_can_read_it(client, master, raw, expected):
    object_id = stored(master, raw)
    for api in (client, master):
        assert sent(api, f"/classes/Sum/{object_id}") == [expected, expected]
        assert sent(api, "/classes/Sum") == [expected, expected]
        observed = sent(api, "/classes/Sum", keys="n,list,text")
        assert [float(number) for number in observed] == [float(expected)] * 2


def test_a_large_number_is_found_by_its_value(client, master):
    stored(master, "1e308")
    for where in ({"n": 1e308}, {"n": {"$gt": 1e307}}, {"list": 1e308}, {"n": {"$in": [1e308]}}):
        assert len(client.results("Sum", where=where)) == 1
    assert client.results("Sum", where={"n": 1e307}) == []
