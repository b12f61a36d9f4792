"""Numbers beyond 64 bits: what clients with types can read, without a change of the value."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from backend.http.renderers import with_exponents
from tests.rest import MASTER


def text_of(path: str) -> str:
    return Client().get(f"/api{path}", headers=MASTER).content.decode()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("1e308", "1e+308"),
        ("-1.7976931348623157e308", "-1.7976931348623157e+308"),
        ("1.5e120", "1.5e+120"),
        (str(2**256), str(2**256)),
        ("9" * 120, "9" * 120),
        ("1" + "0" * 40, "1" + "0" * 40),
        ("1e-300", "1e-300"),
        ("0.1", "0.1"),
    ],
)
def test_a_number_comes_back_in_a_form_that_typed_clients_read(master, sent, shown):
    created = Client().post(
        "/api/classes/Game",
        f'{{"n": {sent}, "list": [{sent}], "text": "{"0" * 200}"}}',
        content_type="application/json",
        headers=MASTER,
    )
    path = f"/classes/Game/{created.json()['objectId']}"
    text = text_of(path)
    if len(sent) < 60 and "e-" not in sent:
        assert f"[{shown}]" in text.replace(" ", "")
    value = json.loads(text)
    assert float(value["n"]) == float(value["list"][0]) == float(sent)
    assert value["text"] == "0" * 200
    assert float(json.loads(text_of("/classes/Game"))["results"][0]["n"]) == float(sent)


def test_only_long_whole_doubles_are_written_with_an_exponent():
    zeros = "0" * 120
    for text in (
        f'["1{zeros}", "\\"1{zeros}", {{"1{zeros}": null}}]',
        f"[{'1' * 18}{zeros}]",
        f"[1{zeros}.5, 0.{zeros}1]",
        f"[1{'0' * 98}]",
        "[0, true, false, null]",
    ):
        assert with_exponents(text.encode()).decode() == text
    assert with_exponents(f"[12{zeros},-3{zeros}]".encode()) == b"[1.2e+121,-3e+120]"
