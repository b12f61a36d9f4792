"""Functions of an ABI: arguments from JSON, results to JSON, and why a contract refuses."""

from __future__ import annotations

from typing import Any

import eth_abi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.core.abi import diamonds
from chain.core.abi.functions import (
    Function,
    NoSuchFunction,
    chosen,
    functions_of,
    named,
    read,
    revert_reason,
    selector,
)
from chain.core.abi.types import BadAbi, BadValue, all_from_json, encode, parts_of

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def only(*inputs: dict[str, Any], outputs: list[dict[str, Any]] | None = None) -> Function:
    entry = {"type": "function", "name": "f", "inputs": [*inputs], "outputs": outputs or []}
    return functions_of([entry])[0]


def typed(type_: str, name: str = "", **more: Any) -> dict[str, Any]:
    return {"type": type_, "name": name, **more}


PAIR = typed("tuple", "pair", components=[typed("uint8", "a"), typed("uint256[]", "b")])


# -- Arguments ------------------------------------------------------------------------------------


def test_arguments_are_encoded_by_their_types() -> None:
    function = only(typed("address"), typed("uint256"), typed("bytes4"), typed("string"), PAIR)
    args = [ADDRESS, str(2**200), "0x12345678", "grün", {"a": 1, "b": ["2", 3]}]
    encoded = eth_abi.encode(
        ["address", "uint256", "bytes4", "string", "(uint8,uint256[])"],
        [ADDRESS, 2**200, b"\x12\x34\x56\x78", "grün", (1, [2, 3])],
    )
    assert function.signature == "f(address,uint256,bytes4,string,(uint8,uint256[]))"
    assert function.call_data(args) == function.selector + encoded.hex()
    assert function.selector == selector(function.signature)


def test_selectors_spell_the_function_type_by_its_own_name() -> None:
    pair = typed("tuple", components=[typed("function"), typed("bytes24")])
    for inputs, spelling in (
        ([typed("function")], "function"),
        ([typed("function[2][]")], "function[2][]"),
        ([pair], "(function,bytes24)"),
    ):
        function = only(*inputs)
        assert function.signature == f"f({spelling})"
        assert function.selector == selector(f"f({spelling})")
    reference = "0x" + "ab" * 24
    assert only(typed("function")).call_data([reference]).endswith("ab" * 24 + "00" * 8)


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("uint8", 256, "args[0]: out of the range of uint8"),
        ("int8", -129, "args[0]: out of the range of int8"),
        ("uint256", "-1", "args[0]: out of the range"),
        ("uint256", 1.0, "args[0]: expected a whole number (uint256)"),
        ("uint256", "0x10", "args[0]: expected a whole number"),
        ("uint256", "9" * 100, "args[0]: expected a whole number"),
        ("uint256", None, "args[0]: expected a whole number"),
        ("bool", 1, "args[0]: expected true or false"),
        ("bool", "true", "args[0]: expected true or false"),
        ("address", ADDRESS.replace("5aA", "5Aa"), "args[0]: expected an address with the right"),
        ("address", 5, "args[0]: expected an address"),
        ("bytes32", "0x12", "args[0]: expected 32 bytes"),
        ("function", "0x12", "args[0]: expected 24 bytes"),
        ("bytes", "0x123", "args[0]: expected bytes"),
        ("bytes", "12", "args[0]: expected bytes"),
        ("string", 5, "args[0]: expected a text"),
        ("string", "\ud800", "args[0]: expected a text that UTF-8"),
        ("uint8[2]", [1], "args[0]: expected 2 values, got 1"),
        ("uint8[]", 1, "args[0]: expected a list"),
        ("uint8[]", [1, "x"], "args[0][1]: expected a whole number"),
        ("uint8[][]", [[1], [300]], "args[0][1][0]: out of the range"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(type_: str, value: Any, message: str) -> None:
    with pytest.raises(BadValue) as raised:
        only(typed(type_)).call_data([value])
    assert str(raised.value).startswith(message)


def test_parts_of_tuples_are_named() -> None:
    for value, message in (
        ({"a": 1}, "args[0].b: missing (uint256[])"),
        ({"a": 1, "b": [], "c": 1}, "args[0]: there is no 'c', but a, b"),
        ({"a": 999, "b": []}, "args[0].a: out of the range"),
        ([1], "args[0]: expected 2 values, got 1"),
        ("x", "args[0]: expected a list, or an object by names"),
    ):
        with pytest.raises(BadValue) as raised:
            only(PAIR).call_data([value])
        assert str(raised.value).startswith(message)


def test_much_data_is_refused() -> None:
    with pytest.raises(BadValue, match="more than 128 KB"):
        only(typed("bytes")).call_data(["0x" + "00" * 200_000])


VALUES = {
    "uint8": st.integers(0, 255),
    "int48": st.integers(-(2**47), 2**47 - 1),
    "uint256": st.integers(0, 2**256 - 1).map(str),
    "int256": st.integers(-(2**255), 2**255 - 1).map(str),
    "bool": st.booleans(),
    "bytes4": st.binary(min_size=4, max_size=4).map(lambda raw: f"0x{raw.hex()}"),
    "function": st.binary(min_size=24, max_size=24).map(lambda raw: f"0x{raw.hex()}"),
    "bytes": st.binary(max_size=70).map(lambda raw: f"0x{raw.hex()}"),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "address": st.just(ADDRESS),
}


def _of(type_: str) -> Any:
    base, bracket, remaining = type_.partition("[")
    values = VALUES[base]
    if not bracket:
        return values
    size = int(remaining[:-1]) if remaining[:-1] else None
    return st.lists(values, min_size=size or 0, max_size=3 if size is None else size)


TYPES = st.sampled_from([f"{base}{ending}" for base in VALUES for ending in ("", "[]", "[2]")])
PARTS = st.lists(TYPES, max_size=4).flatmap(
    lambda types: st.tuples(st.just(types), st.tuples(*map(_of, types)))
)


@settings(max_examples=100, deadline=None)
@given(PARTS)
def test_what_clients_write_they_read_again(drawn: tuple[list[str], tuple[Any, ...]]) -> None:
    types, values = drawn
    entries = [typed(item, f"p{number}") for number, item in enumerate(types)]
    if entries:
        entries = [typed("tuple", "all", components=entries), *entries]
        given_ = {"all": [*values], **{f"p{number}": item for number, item in enumerate(values)}}
    else:
        given_ = {}
    parts = parts_of(entries, "abi")
    data = encode(parts, all_from_json(parts, given_, "args"))
    parsed = read(parts, data)
    if entries:
        expected = {f"p{number}": _without_nul(item) for number, item in enumerate(values)}
        assert parsed == {"all": expected, **expected}


def _without_nul(results: Any) -> Any:
    """PostgreSQL has no NUL in its texts, so nothing that is read has one."""
    if isinstance(results, list):
        return [_without_nul(result) for result in results]
    return results.replace("\x00", "\ufffd") if isinstance(results, str) else results


# -- Results --------------------------------------------------------------------------------------


def test_results_are_nothing_the_value_or_an_object() -> None:
    assert only().result(b"") is None
    item = only(outputs=[typed("uint48")])
    assert item.result(eth_abi.encode(["uint48"], [2**48 - 1])) == 2**48 - 1
    wide = only(outputs=[typed("uint56")])
    assert wide.result(eth_abi.encode(["uint56"], [1])) == "1"
    two = only(outputs=[typed("address", "who"), typed("bytes")])
    answer = eth_abi.encode(["address", "bytes"], [ADDRESS.lower(), b"\x01"])
    assert two.result(answer) == {"who": ADDRESS, "1": "0x01"}
    with pytest.raises(BadValue, match="isn't what its ABI says"):
        item.result(b"\x01")


def test_an_answer_that_says_it_holds_more_than_it_is_is_refused() -> None:
    deep = only(outputs=[typed("uint256[][][]")])
    same = b"".join(number.to_bytes(32, "big") for number in (32, 200, *[6400] * 200, 200))
    bomb = same + b"".join((6400).to_bytes(32, "big") for _ in range(200)) + same
    with pytest.raises(BadValue, match="isn't what its ABI says"):
        deep.result(bomb)
    with pytest.raises(BadValue):
        only(outputs=[typed("string[]")]).result(b"\xff" * 320)
    with pytest.raises(BadValue, match="too large"):
        only(outputs=[typed("uint256[4096][64]")]).result(b"")


def test_a_text_that_is_not_utf8_is_read_all_the_same() -> None:
    text = only(outputs=[typed("string")])
    assert text.result(eth_abi.encode(["bytes"], [b"\xffabc"])) == "\N{REPLACEMENT CHARACTER}abc"


# -- Which function -------------------------------------------------------------------------------

TRANSFERS = functions_of(
    [
        {"type": "function", "name": "send", "inputs": [typed("address", "to")]},
        {
            "type": "function",
            "name": "send",
            "inputs": [typed("address", "to"), typed("uint8", "n")],
        },
        {"type": "function", "name": "send", "inputs": [typed("bytes32", "id")]},
        {"type": "event", "name": "send", "inputs": []},
        {"name": "old", "inputs": [], "constant": True, "outputs": []},
    ]
)


def test_the_one_with_so_many_arguments_is_meant() -> None:
    candidates = named(TRANSFERS, "send")
    assert chosen(candidates, "send", [ADDRESS, 1]).signature == "send(address,uint8)"
    assert chosen(candidates, "send", {"id": "0x"}).signature == "send(bytes32)"
    with pytest.raises(NoSuchFunction, match=r"several.*send\(address\), send\(bytes32\)"):
        chosen(candidates, "send", [1])
    with pytest.raises(NoSuchFunction, match="none of these takes"):
        chosen(candidates, "send", [1, 2, 3])
    (exact,) = named(TRANSFERS, "send(bytes32)")
    assert chosen([exact], "send(bytes32)", ["0x"]) is exact
    with pytest.raises(NoSuchFunction, match="no method 'other'"):
        chosen(named(TRANSFERS, "other"), "other", [])


def test_older_abis_are_understood() -> None:
    assert named(TRANSFERS, "old")[0].only_reads


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "function"}, "abi[0].name"),
        ({"type": "function", "name": 5}, "abi[0].name"),
        ({"type": "function", "name": "f", "inputs": {}}, "abi[0].inputs: expected a list"),
        ({"type": "function", "name": "f", "inputs": [5]}, "abi[0].inputs[0]: expected an object"),
        *(
            (
                {"type": "function", "name": "f", "inputs": [typed(bad)]},
                f"abi[0].inputs[0].type: {bad!r} is no type",
            )
            for bad in ("uint", "u", "uint7", "uint264", "bytes33", "bytes0", "uint8[", "uint8[0]")
            if bad != "uint"
        ),
        ({"type": "function", "name": "f", "inputs": [typed("tuple")]}, "abi[0].inputs[0].comp"),
    ],
)
def test_an_abi_that_is_none_is_refused_with_the_place(entry: Any, message: str) -> None:
    with pytest.raises(BadAbi) as raised:
        functions_of([entry])
    assert str(raised.value).startswith(message)


# -- Reverts --------------------------------------------------------------------------------------

ERRORS = [
    {"type": "error", "name": "Poor", "inputs": [typed("uint256", "has"), typed("address", "")]},
]


@pytest.mark.parametrize(
    ("data", "message", "text"),
    [
        (
            selector("Error(string)") + eth_abi.encode(["string"], ["not yours"]).hex(),
            "execution reverted: not yours",
            "not yours",
        ),
        (selector("Panic(uint256)") + f"{0x11:064x}", "", "Panic 0x11: arithmetic overflow"),
        (selector("Panic(uint256)") + f"{0x99:064x}", "", "Panic 0x99: unknown"),
        (
            selector("Poor(uint256,address)")
            + eth_abi.encode(["uint256", "address"], [5, ADDRESS]).hex(),
            "execution reverted",
            f"Poor(has: 5, {ADDRESS})",
        ),
        ("0xdeadbeef", "execution reverted", "an error that no registered ABI has (deadbeef)"),
        (selector("Error(string)") + "00", "execution reverted", "no registered ABI has"),
        ("0x", "execution reverted", "no reason given"),
        (None, "execution reverted: said so", "said so"),
        (None, "out of gas", "no reason given"),
        ("0xzz", "", "no reason given"),
    ],
)
def test_a_reason_is_read(data: str | None, message: str, text: str) -> None:
    assert text in revert_reason(data, [None, [{"type": "error"}], ERRORS], message)


# -- Cuts -----------------------------------------------------------------------------------------


def test_a_cut_adds_what_a_facet_brings() -> None:
    assert diamonds.CUT_SELECTOR == "0x1f931c1c"
    assert diamonds.LOUPE_SELECTOR == "0xcdffacc6"
    data = diamonds.cut(ADDRESS, ["0x12345678", "0xdeadbeef"])
    (cuts, init, call) = eth_abi.decode(
        ["(address,uint8,bytes4[])[]", "address", "bytes"], bytes.fromhex(data[10:])
    )
    expected = ((ADDRESS.lower(), 0, (b"\x12\x34\x56\x78", b"\xde\xad\xbe\xef")),)
    assert (cuts, init, call) == (expected, "0x" + "00" * 20, b"")
    assert diamonds.added_by(data) == {"0x12345678", "0xdeadbeef"}
    assert diamonds.added_by("0x12345678") == frozenset()


def test_what_is_there_collides_but_for_what_every_diamond_has() -> None:
    names = ("owner", "init", "own")
    entries = [{"type": "function", "name": name, "inputs": []} for name in names]
    entries[1]["inputs"] = [typed("bytes")]
    brings = diamonds.brought(functions_of(entries))
    owner, own = selector("owner()"), selector("own()")
    assert brings == {owner: "owner()", own: "own()"}
    assert diamonds.to_add(brings, {}) == ([owner, own], {})
    assert diamonds.to_add(brings, {owner: ADDRESS}) == ([own], {})
    assert diamonds.to_add(brings, {own: ADDRESS}) == ([owner], {own: ADDRESS})
