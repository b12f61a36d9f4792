"""Whose code a contract runs is read from a node's response, which may be anything."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi import encode
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.core.abi.proxies import EVENTS, QUESTIONS, addresses_in, named_by, questions
from chain.core.failures import Refused
from chain.core.node import Log

ONE, TWO = "0x" + "11" * 20, "0x" + "22" * 20
NOTHING = "0x" + "00" * 32
REFUSED = Refused(3, "execution reverted")


def word(address: str) -> str:
    return "0x" + "00" * 12 + address[2:]


def answers(**given_: Any) -> list[Any]:
    names = ("implementation", "zeppelin", "code", "facets", "beacon")
    plain = {"code": "0x6001", "facets": REFUSED}
    return [given_.get(name, plain.get(name, NOTHING)) for name in names]


def facets(*addresses: str) -> str:
    return (
        "0x"
        + encode(["(address,bytes4[])[]"], [[(address, [b"abcd"]) for address in addresses]]).hex()
    )


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({}, ([], None)),
        ({"implementation": word(ONE)}, ([ONE], None)),
        ({"zeppelin": word(ONE)}, ([ONE], None)),
        ({"beacon": word(TWO)}, ([], TWO)),
        (
            {"code": f"0x363d3d373d3d3d363d73{ONE[2:]}5af43d82803e903d91602b57fd5bf3"},
            ([ONE], None),
        ),
        ({"facets": facets(ONE, TWO)}, ([ONE, TWO], None)),
        ({"facets": facets()}, ([], None)),
        ({"implementation": word(TWO), "facets": facets(ONE)}, ([TWO, ONE], None)),
        ({"implementation": "0x" + "ff" * 32, "facets": "0x01", "code": None}, ([], None)),
        ({"implementation": REFUSED, "zeppelin": "0x", "beacon": REFUSED}, ([], None)),
    ],
)
def test_answers_name_the_code(given_: dict[str, Any], expected: Any) -> None:
    assert len(questions(ONE)) == QUESTIONS
    assert addresses_in(answers(**given_)) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text() | st.none() | st.integers(), min_size=5, max_size=5))
def test_no_answer_is_too_strange(strange: list[Any]) -> None:
    assert addresses_in(strange) == ([], None)


def test_logs_name_new_code() -> None:
    upgraded, beacon, cut = (event.topic for event in EVENTS)
    cuts = encode(
        ["(address,uint8,bytes4[])[]", "address", "bytes"],
        [[(ONE, 0, []), (TWO, 2, [])], ONE, b"\x01"],
    ).hex()
    assert named_by([log("A", [upgraded, word(ONE)]), log("A", [upgraded, word(TWO)])]) == {
        "a": [ONE, TWO]
    }
    assert named_by([log("B", [beacon, word(ONE)])]) == {"b": []}
    assert named_by([log("c", [cut], "0x" + cuts)]) == {"c": [ONE, TWO]}
    assert named_by([log("d", [upgraded]), log("e", []), log("f", [NOTHING])]) == {"d": []}


def log(address: str, topics: list[str], data: str = "0x") -> Log:
    return Log(address, topics, data, "0x1", NOTHING, NOTHING, "0x0", "0x0")
