"""The receipts of a whole block: their root, and the logs in them."""

from __future__ import annotations

from typing import Any

from chain.core.blocks.receipts import have_bloom, have_root, logs_in, root_of
from chain.core.node import Header, Log, LogFilter, LoggedReceipt

GEM = "0x" + "ab" * 20
COIN = "0x" + "cd" * 20
TOPIC = "0x" + "11" * 32
OTHER_TOPIC = "0x" + "22" * 32
BLOCK = "0x" + "77" * 32


def log(address: str = GEM, topic: str = TOPIC, data: str = "0x", **more: Any) -> Log:
    fields = {"block_number": "0x9", "block_hash": BLOCK, "transaction_hash": "0x0"}
    return Log(
        address, [topic], data, **{**fields, "transaction_index": "0x9", "log_index": "0x9"}, **more
    )


def receipt(place: int, *logs: Log, **more: Any) -> LoggedReceipt:
    return LoggedReceipt(
        transaction_hash=f"0x{place:064x}",
        block_hash=BLOCK,
        block_number="0x5",
        logs=[*logs],
        cumulative_gas_used=hex(21_000 * (place + 1)),
        **{"status": "0x1", "type": "0x2", **more},
    )


def header(**more: Any) -> Header:
    return Header(number="0x5", hash=BLOCK, parent_hash=BLOCK, **more)


def test_no_receipts_have_the_root_of_an_empty_trie() -> None:
    assert root_of([]) == "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"


def test_everything_but_the_hash_of_a_transaction_changes_the_root() -> None:
    receipts = [receipt(place, log(data=f"0x{place:064x}")) for place in range(300)]
    root = root_of(receipts)
    assert have_root(header(receipts_root=root), receipts)
    for place in (0, 127, 128, 299):
        for changed in (
            receipt(place, log(data="0x01")),
            receipt(place, log(data=f"0x{place:064x}", topic=OTHER_TOPIC)),
            receipt(place, log(data=f"0x{place:064x}", address=COIN)),
            receipt(place),
            receipt(place, log(data=f"0x{place:064x}"), status="0x0"),
            receipt(place, log(data=f"0x{place:064x}"), type="0x0"),
        ):
            receipts_with_change = [*receipts[:place], changed, *receipts[place + 1 :]]
            assert not have_root(header(receipts_root=root), receipts_with_change)
    assert not have_root(header(receipts_root=root), receipts[:-1])
    assert not have_root(header(receipts_root=root), [receipts[1], receipts[0], *receipts[2:]])


def test_malformed_receipts_have_no_root() -> None:
    for malformed in (
        receipt(0, log(data="0x123")),
        receipt(0, log(address="ab")),
        receipt(0, log(topic="0xzz")),
        receipt(0, status=None),
        receipt(0, type="0x100"),
    ):
        assert root_of([malformed]) is None
        assert not have_root(header(receipts_root=None), [malformed])


def test_receipts_without_one_of_the_logs_lack_bits_of_the_filter() -> None:
    from chain.core.blocks.bloom import bloom_of

    item = header(logs_bloom=f"0x{bloom_of([log(), log(COIN)]):0512x}")
    assert have_bloom(item, [receipt(0, log()), receipt(1, log(COIN))])
    assert not have_bloom(item, [receipt(0, log()), receipt(1)])
    assert not have_bloom(item, [receipt(0, log()), receipt(1, log(COIN, OTHER_TOPIC))])
    assert not have_bloom(header(logs_bloom="0x"), [])


def test_where_a_log_is_follows_from_the_receipts() -> None:
    receipts = [receipt(0, log(COIN), log()), receipt(1), receipt(2, log(topic=OTHER_TOPIC), log())]
    logs = logs_in(header(), receipts, LogFilter((GEM.upper().replace("X", "x"),), (TOPIC,)))
    assert [(item.height, item.index, item.transaction_index) for item in logs] == [
        (5, 1, "0x0"),
        (5, 3, "0x2"),
    ]
    assert [item.transaction_hash for item in logs] == [f"0x{0:064x}", f"0x{2:064x}"]
    assert len(logs_in(header(), receipts, LogFilter())) == 4


def test_data_with_spaces_between_its_bytes_is_malformed() -> None:
    assert root_of([receipt(0, log(data="0x00 11"))]) is None
