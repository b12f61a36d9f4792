"""For any types and values, logs are decoded as eth_abi decodes them."""

from __future__ import annotations

import json
from typing import Any

from eth_abi import encode
from eth_abi.codec import ABIDecoder
from eth_abi.decoding import ByteStringDecoder, StringDecoder
from eth_abi.encoding import ByteStringEncoder, TextStringEncoder
from eth_abi.exceptions import DecodingError
from eth_abi.grammar import TupleType, parse
from eth_abi.registry import registry
from eth_utils import to_checksum_address
from hypothesis import given, settings
from hypothesis import strategies as st

from chain.core.abi.contract import check_abi, events_of
from chain.core.abi.logs import Vocabulary

WORDS = st.one_of(
    st.sampled_from(["address", "bool", "function"]),
    st.builds(
        "{}int{}".format, st.sampled_from(["u", ""]), st.integers(1, 32).map(lambda n: 8 * n)
    ),
    st.builds("bytes{}".format, st.integers(1, 32)),
)
TYPES = st.recursive(
    st.one_of(WORDS, st.sampled_from(["string", "bytes"])),
    lambda inner: st.one_of(
        st.builds("{}[{}]".format, inner, st.sampled_from(["", "1", "2", "3"])),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({','.join(parts)})"),
    ),
    max_leaves=5,
)


class _Loose:
    """Doesn't look at padding: eth_abi has an option for it, which ends at the first list."""

    strict = property(lambda self: False, lambda self, value: None)


class _Texts(_Loose, StringDecoder):
    pass


class _Bytes(_Loose, ByteStringDecoder):
    pass


def _decoder() -> ABIDecoder:
    types = registry.copy()
    types.unregister("string")
    types.register("string", TextStringEncoder, _Texts(handle_string_errors="replace"))
    types.unregister("bytes")
    types.register("bytes", ByteStringEncoder, _Bytes())
    return ABIDecoder(types)


decode = _decoder().decode
few = settings(max_examples=60, deadline=None)


def values_of(type_: str) -> st.SearchStrategy[Any]:
    parsed = parse(type_)
    if parsed.is_array:
        item = parsed.item_type.to_type_str()
        length = parsed.arrlist[-1]
        least, most = (length[0], length[0]) if length else (0, 3)
        return st.lists(values_of(item), min_size=least, max_size=most)
    if isinstance(parsed, TupleType):
        return st.tuples(*(values_of(component.to_type_str()) for component in parsed.components))
    if parsed.base == "address":
        return st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
    if parsed.base == "bool":
        return st.booleans()
    if parsed.base == "string":
        return st.text(max_size=40)
    if parsed.base == "function":
        return st.binary(min_size=24, max_size=24)
    if parsed.base == "bytes":
        size = parsed.sub
        return st.binary(min_size=size or 0, max_size=size or 70)
    bits = parsed.sub
    if parsed.base == "uint":
        return st.integers(0, 2**bits - 1)
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def shown(type_: str, value: Any) -> Any:
    """A value of eth_abi by the rules of the JSON."""
    parsed = parse(type_)
    if parsed.is_array:
        return [shown(parsed.item_type.to_type_str(), item) for item in value]
    if isinstance(parsed, TupleType):
        types = [item.to_type_str() for item in parsed.components]
        return {str(n): shown(*pair) for n, pair in enumerate(zip(types, value, strict=True))}
    if parsed.base == "address":
        return to_checksum_address(value)
    if parsed.base in ("uint", "int"):
        return value if parsed.sub <= 48 else str(value)
    if parsed.base in ("bytes", "function"):
        return "0x" + value.hex()
    return value.replace("\0", "\ufffd") if parsed.base == "string" else value


def input_of(type_: str) -> dict[str, Any]:
    base, brackets = type_, ""
    if type_.startswith("("):
        end = type_.rindex(")") + 1
        base, brackets = "tuple", type_[end:]
        parts = parse(type_[:end]).components
        components = [input_of(part.to_type_str()) for part in parts]
        return {"name": "", "type": base + brackets, "components": components}
    return {"name": "", "type": type_}


def vocabulary(types: list[str]) -> tuple[Vocabulary, str]:
    abi = [{"type": "event", "name": "E", "inputs": [input_of(item) for item in types]}]
    check_abi(abi)
    [event] = events_of(abi)
    return Vocabulary([event]), event.topic


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[str], list[Any]]:
    types = draw(st.lists(TYPES, min_size=1, max_size=4))
    return types, [draw(values_of(item)) for item in types]


@few
@given(logs())
def test_what_eth_abi_has_encoded_is_decoded(log: tuple[list[str], list[Any]]) -> None:
    types, values = log
    existing, topic = vocabulary(types)
    name, args = existing.read([topic], "0x" + encode(types, values).hex())
    assert name == "E"
    assert json.loads(args) == {
        str(n): shown(*pair) for n, pair in enumerate(zip(types, values, strict=True))
    }


@few
@given(logs(), st.data())
def test_altered_data_are_decoded_as_eth_abi_does_or_not_at_all(
    log: tuple[list[str], list[Any]], choose: st.DataObject
) -> None:
    types, values = log
    content = bytearray(encode(types, values))
    for _ in range(choose.draw(st.integers(1, 3))):
        # The low bytes of words are where lengths and offsets are.
        place = choose.draw(st.integers(0, len(content) - 1) | st.just(31))
        content[min(place, len(content) - 1)] = choose.draw(st.integers(0, 255))
    del content[choose.draw(st.integers(0, len(content)) | st.just(len(content))) :]
    existing, topic = vocabulary(types)
    name, args = existing.read([topic], "0x" + content.hex())
    if name is None:
        return
    try:
        decoded = decode(types, bytes(content))
    except DecodingError as error:
        raise AssertionError(f"decoded as {args}") from error
    assert json.loads(args) == {
        str(n): shown(*pair) for n, pair in enumerate(zip(types, decoded, strict=True))
    }


@few
@given(st.lists(TYPES, min_size=1, max_size=3), st.binary(max_size=600))
def test_any_bytes_are_an_event(types: list[str], content: bytes) -> None:
    existing, topic = vocabulary(types)
    _, args = existing.read([topic], "0x" + content.hex())
    assert isinstance(json.loads(args), dict)
