"""Logs are decoded by the events of ABIs, or kept as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from eth_abi import encode
from eth_abi.packed import encode_packed
from eth_utils import keccak

from chain.core.abi.contract import events_of
from chain.core.abi.logs import AMBIGUOUS, MISMATCH, UNKNOWN, Vocabulary

ANN = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
BOB = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
NOBODY = "0x" + "00" * 20


def event(name: str, *inputs: str, anonymous: bool = False) -> dict[str, Any]:
    """An event of an ABI from inputs such as ``address indexed from``."""
    read = []
    for text in inputs:
        type_, *remaining = text.split(" ")
        is_indexed = "indexed" in remaining
        name_ = "".join(word for word in remaining if word != "indexed")
        read.append({"name": name_, "type": type_, "indexed": is_indexed})
    return {"type": "event", "name": name, "inputs": read, "anonymous": anonymous}


def topic_of(signature: str) -> str:
    return "0x" + keccak(text=signature).hex()


def word(type_: str, value: Any) -> str:
    return "0x" + encode([type_], [value]).hex()


def data(types: list[str], *values: Any) -> str:
    return "0x" + encode(types, values).hex()


def read(abi: list[Any], topics: list[str], content: str = "0x") -> tuple[str | None, Any]:
    name, args = Vocabulary(events_of(abi)).read(topics, content)
    return name, json.loads(args)


TRANSFER = topic_of("Transfer(address,address,uint256)")
TOKEN = event("Transfer", "address indexed from", "address indexed to", "uint256 indexed tokenId")
COIN = event("Transfer", "address indexed from", "address indexed to", "uint256 value")


def test_a_transfer_of_a_token_has_addresses_with_checksum_and_its_id_as_text() -> None:
    topics = [TRANSFER, word("address", NOBODY), word("address", ANN), word("uint256", 7)]
    assert read([TOKEN], topics) == ("Transfer", {"from": NOBODY, "to": ANN, "tokenId": "7"})


def test_of_two_events_with_one_topic_the_number_of_topics_tells() -> None:
    topics = [TRANSFER, word("address", ANN), word("address", BOB)]
    coins = data(["uint256"], 2**256 - 1)
    assert read([TOKEN, COIN], topics, coins)[1]["value"] == str(2**256 - 1)
    assert read([TOKEN, COIN], [*topics, word("uint256", 1)])[1]["tokenId"] == "1"


@pytest.mark.parametrize(
    ("indexed", "is_token_transfer"),
    [
        ((True, True, False), True),
        ((True, True, True), True),
        ((False, False, False), True),
        ((True, False, False), False),
        ((True, False, True), False),
        ((False, True, True), False),
        ((False, False, True), False),
    ],
)
@pytest.mark.parametrize(
    ("types", "is_signature"),
    [
        (("address", "address", "uint256"), True),
        (("address", "uint256", "address"), False),
        (("uint256", "address", "address"), False),
        (("address", "address", "uint128"), False),
        (("address", "address", "bytes32"), False),
    ],
)
def test_the_transfer_of_a_token_has_three_forms(
    indexed: tuple[bool, ...], is_token_transfer: bool, types: tuple[str, ...], is_signature: bool
) -> None:
    inputs = [
        f"{type_} indexed {name}" if is_indexed else f"{type_} {name}"
        for type_, is_indexed, name in zip(types, indexed, ("from", "to", "value"), strict=True)
    ]
    topics = [topic_of(f"Transfer({','.join(types)})"), *[word("uint256", 1)] * sum(indexed)]
    vocabulary = Vocabulary(events_of([event("Transfer", *inputs)]))
    assert vocabulary.is_token_transfer(topics) is (is_signature and is_token_transfer)
    assert not vocabulary.is_token_transfer([*topics, word("uint256", 1)])
    assert not vocabulary.is_token_transfer([])


def test_where_the_number_of_topics_does_not_tell_the_first_event_that_fits_counts() -> None:
    first = event("Sent", "address indexed to", "uint8 amount")
    second = event("Sent", "address to", "uint8 indexed amount")
    topic = topic_of("Sent(address,uint8)")
    log = [topic, word("uint8", 5)], data(["address"], ANN)
    assert read([first, second], *log) == ("Sent", {"to": ANN, "amount": 5})


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("uint8", 255, 255),
        ("uint48", 2**48 - 1, 2**48 - 1),
        ("uint56", 1, "1"),
        ("uint64", 2**64 - 1, str(2**64 - 1)),
        ("uint256", 2**256 - 1, str(2**256 - 1)),
        ("int8", -128, -128),
        ("int24", -1, -1),
        ("int48", -(2**47), -(2**47)),
        ("int56", -5, "-5"),
        ("int256", -(2**255), str(-(2**255))),
        ("bool", True, True),
        ("address", ANN.lower(), ANN),
        ("bytes1", b"\xff", "0xff"),
        ("bytes32", b"\x01" * 32, "0x" + "01" * 32),
        ("bytes", b"", "0x"),
        ("bytes", b"\x00\x01", "0x0001"),
        ("string", "", ""),
        ("string", 'a "quoted" \\ text\n\u2028 🙂', 'a "quoted" \\ text\n\u2028 🙂'),
        ("uint8[]", [], []),
        ("uint8[]", [1, 2], [1, 2]),
        ("uint256[2]", [1, 2], ["1", "2"]),
        ("string[2][]", [["a", "b"], ["", "d"]], [["a", "b"], ["", "d"]]),
        ("bool[2][2]", [[True, False], [False, True]], [[True, False], [False, True]]),
    ],
)
def test_values_in_the_data_keep_what_they_are(type_: str, value: Any, expected: Any) -> None:
    abi = [event("Noted", f"{type_} what", "uint8 n")]
    log = [topic_of(f"Noted({type_},uint8)")], data([type_, "uint8"], value, 3)
    assert read(abi, *log) == ("Noted", {"what": expected, "n": 3})


@pytest.mark.parametrize(
    ("type_", "topic", "expected"),
    [
        ("uint8", word("uint8", 9), 9),
        ("uint64", word("uint64", 9), "9"),
        ("int16", word("int16", -9), -9),
        ("int256", word("int256", -9), "-9"),
        ("bool", word("bool", True), True),
        ("bytes4", word("bytes4", b"abcd"), "0x61626364"),
        ("bytes32", "0x" + "ab" * 32, "0x" + "ab" * 32),
        ("string", "0x" + keccak(text="hello").hex(), "0x" + keccak(text="hello").hex()),
        ("bytes", "0x" + "cd" * 32, "0x" + "cd" * 32),
        ("uint8[2]", "0x" + "ef" * 32, "0x" + "ef" * 32),
    ],
)
def test_values_in_topics_are_themselves_or_their_hash(
    type_: str, topic: str, expected: Any
) -> None:
    signature = topic_of(f"Noted({type_})")
    assert read([event("Noted", f"{type_} indexed what")], [signature, topic]) == (
        "Noted",
        {"what": expected},
    )


def test_an_event_with_a_function_is_found_by_the_topic_of_solidity() -> None:
    reference = bytes(range(24))
    abi = [event("Set", "function indexed old", "function callback", "function[] others")]
    topics = [topic_of("Set(function,function,function[])"), word("function", reference)]
    content = data(["function", "function[]"], reference, [reference])
    shown = "0x" + reference.hex()
    assert read(abi, topics, content) == (
        "Set",
        {"old": shown, "callback": shown, "others": [shown]},
    )
    padded = [topics[0], topics[1][:-1] + "1"]
    assert read(abi, padded, content)[0] is None


def test_tuples_are_objects_and_parts_without_a_name_are_numbered() -> None:
    entry = event("Minted", "uint256 tokenId", "tuple[] metadata", "tuple point")
    entry["inputs"][1]["components"] = [
        {"name": "key", "type": "string"},
        {"name": "attributeType", "type": "uint8"},
        {"name": "value", "type": "string"},
    ]
    entry["inputs"][2]["components"] = [{"type": "int8"}, {"name": "", "type": "int8"}]
    types = ["uint256", "(string,uint8,string)[]", "(int8,int8)"]
    content = data(types, 1, [("color", 1, "red"), ("", 255, "")], (-1, 2))
    assert read([entry], [topic_of(f"Minted({','.join(types)})")], content) == (
        "Minted",
        {
            "tokenId": "1",
            "metadata": [
                {"key": "color", "attributeType": 1, "value": "red"},
                {"key": "", "attributeType": 255, "value": ""},
            ],
            "point": {"0": -1, "1": 2},
        },
    )


def test_no_value_is_lost_to_a_missing_or_doubled_name() -> None:
    abi = [
        event("Sent", "uint8", "uint8 indexed a", "uint8 a", "uint8 constructor", "uint8 __type")
    ]
    types = ["uint8"] * 4
    log = [topic_of("Sent(uint8,uint8,uint8,uint8,uint8)"), word("uint8", 2)]
    _, args = read(abi, log, data(types, 1, 3, 4, 5))
    assert args == {"0": 1, "1": 2, "2": 3, "3": 4, "4": 5}


def test_an_event_without_arguments_has_none() -> None:
    assert read([event("Paused")], [topic_of("Paused()")]) == ("Paused", {})


def test_text_that_can_not_be_kept_has_replacement_characters() -> None:
    abi = [event("Said", "string text")]
    content = data(["bytes"], b"a\xffb\x00c\xed\xa0\x80")  # encoded like a string
    _, args = read(abi, [topic_of("Said(string)")], content)
    assert args == {"text": "a\ufffdb\ufffdc\ufffd\ufffd\ufffd"}


# -- What can't be decoded ------------------------------------------------------------------------


def raw(topics: list[str], content: str, reason: str) -> tuple[None, Any]:
    return None, {"topics": topics, "data": content, "undecoded": reason}


def test_an_unknown_event_is_kept_as_it_is() -> None:
    topics = [topic_of("Other(uint8)")]
    assert read([TOKEN], topics, "0x01") == raw(topics, "0x01", UNKNOWN)
    assert read([], [], "0x") == raw([], "0x", UNKNOWN)


MISFITS = {
    "fewer topics": ([TOKEN], [TRANSFER, word("address", ANN)], "0x"),
    "more topics": ([COIN], [TRANSFER, *[word("address", ANN)] * 3], "0x"),
    "no data": ([COIN], [TRANSFER, *[word("address", ANN)] * 2], "0x"),
    "half a word": ([COIN], [TRANSFER, *[word("address", ANN)] * 2], "0x" + "00" * 31),
    "odd digits": ([COIN], [TRANSFER, *[word("address", ANN)] * 2], "0x000"),
    "no digits": ([COIN], [TRANSFER, *[word("address", ANN)] * 2], "0x" + "zz" * 32),
    "a long topic": ([COIN], [TRANSFER, word("address", ANN) + "00", word("address", ANN)], "0x"),
    "more than an address": (
        [TOKEN],
        [TRANSFER, "0x" + "01" * 32, word("address", ANN), word("uint8", 1)],
        "0x",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_log_that_does_not_fit_its_abi_is_kept_as_it_is(case: str) -> None:
    abi, topics, content = MISFITS[case]
    assert read(abi, topics, content) == raw(topics, content, MISMATCH)


@pytest.mark.parametrize(
    ("type_", "content"),
    [
        ("bool", word("uint8", 2)),
        ("uint8", word("uint16", 256)),
        ("uint24", word("uint32", 2**24)),
        ("uint64", word("uint256", 2**64)),
        ("int8", word("int16", 128)),
        ("int8", word("int16", -129)),
        ("int24", word("uint256", 2**255)),
        ("address", word("uint256", 2**160)),
        ("bytes4", "0x" + "61" * 32),
        ("string", word("uint256", 2**255)),
        ("string", data(["uint256", "uint256"], 32, 2**64)),
        ("uint8[]", data(["uint256", "uint256"], 32, 2**200)),
        ("uint8[]", data(["uint256", "uint256", "uint8"], 32, 2, 1)),
        ("uint8[2]", word("uint8", 1)),
        ("bool[]", data(["uint256", "uint256", "uint256"], 32, 1, 2)),
    ],
)
def test_what_is_no_value_of_its_type_is_kept_as_it_is(type_: str, content: str) -> None:
    topics = [topic_of(f"Noted({type_})")]
    assert read([event("Noted", f"{type_} what")], topics, content) == raw(
        topics, content, MISMATCH
    )


def test_a_log_can_not_say_that_it_holds_more_than_its_length() -> None:
    """Lists of lists of lists, all of them the same one: a few words for 16 million values."""
    words = []
    for level in range(6):
        count = 16
        words += [count, *[(count if level < 5 else 0) * 32] * count]
    content = "0x" + b"".join(value.to_bytes(32, "big") for value in [32, *words]).hex()
    topics = [topic_of("Noted(uint8[][][][][][])")]
    name, _ = read([event("Noted", "uint8[][][][][][] what")], topics, content)
    assert name is None


def test_what_follows_the_values_does_not_matter() -> None:
    topics = [topic_of("Noted(uint8)")]
    content = data(["uint8", "uint8"], 1, 2)
    assert read([event("Noted", "uint8 what")], topics, content) == ("Noted", {"what": 1})


def test_a_text_at_the_end_needs_no_padding() -> None:
    content = "0x" + encode(["uint256", "uint256"], [32, 5]).hex() + b"hello".hex()
    assert read([event("Said", "string text")], [topic_of("Said(string)")], content)[1] == {
        "text": "hello"
    }


def test_what_is_no_hexadecimal_digit_can_be_stored_too() -> None:
    _, args = read([], ["0x\x00\t"], "0x\\u0000")
    assert args == {"topics": ["0x??"], "data": "0x?u0000", "undecoded": UNKNOWN}


# -- Anonymous events -----------------------------------------------------------------------------


def test_an_anonymous_event_is_reported_by_the_number_of_its_topics() -> None:
    abi = [
        event("One", "address indexed who", "uint8 n", anonymous=True),
        event("Two", "uint8 indexed a", "uint8 indexed b", anonymous=True),
        event("None", "string text", anonymous=True),
    ]
    assert read(abi, [word("address", ANN)], word("uint8", 4)) == ("One", {"who": ANN, "n": 4})
    assert read(abi, [word("uint8", 1), word("uint8", 2)]) == ("Two", {"a": 1, "b": 2})
    assert read(abi, [], data(["string"], "hi")) == ("None", {"text": "hi"})


def test_a_log_of_another_length_is_not_taken_for_an_anonymous_event() -> None:
    abi = [event("One", "bytes32 indexed what", anonymous=True)]
    topics = [topic_of("Other(uint8)")]
    assert read(abi, topics) == ("One", {"what": topics[0]})
    assert read(abi, topics, word("uint8", 1)) == raw(topics, word("uint8", 1), UNKNOWN)


def test_of_two_anonymous_events_that_may_be_meant_none_is_guessed() -> None:
    abi = [event("One", "uint8 indexed a", anonymous=True)]
    abi.append(event("Two", "uint8 indexed b", anonymous=True))
    topics = [word("uint8", 1)]
    assert read(abi, topics) == raw(topics, "0x", AMBIGUOUS)


def test_an_event_with_a_topic_of_its_own_comes_before_anonymous_ones() -> None:
    abi = [event("One", "bytes32 indexed what", anonymous=True), event("Paused")]
    assert read(abi, [topic_of("Paused()")]) == ("Paused", {})


def test_packed_data_are_no_event() -> None:
    content = "0x" + encode_packed(["uint8", "string"], [1, "a"]).hex()
    topics = [topic_of("Noted(uint8,string)")]
    abi = [event("Noted", "uint8 n", "string text")]
    assert read(abi, topics, content) == raw(topics, content, MISMATCH)
