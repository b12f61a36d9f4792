"""The states of a followed transaction: the table of the specification, and what lies beyond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chain.core.node import Receipt
from chain.core.transactions.states import (
    CONFIRMED,
    FAILED,
    FINALIZED,
    INCLUDED,
    LATE_DELAY,
    LATE_WATCH,
    ORPHANED,
    PENDING,
    SAFE,
    STALLED,
    Choices,
    Mined,
    Record,
    mined_by,
    next_state,
    pause_after,
    started,
)

START = 1_000_000_000_000
HOUR = 3_600_000
ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def receipt(status: str | None = "0x1", **fields: str | None) -> Receipt:
    values: dict[str, str | None] = {
        "transaction_hash": "0x" + "11" * 32,
        "block_hash": "0x" + "AA" * 32,
        "block_number": "0x10",
        "transaction_index": "0x2",
        "gas_used": "0x5208",
        "effective_gas_price": "0x" + "f" * 64,
        "from_address": ADDRESS.lower(),
        "to": None,
        "status": status,
        **fields,
    }
    return Receipt(**values)  # type: ignore[arg-type]


def mined(status: str = "0x1", block: str = "aa") -> Mined:
    return mined_by(receipt(status, block_hash="0x" + block * 32))


def pending(attempts: int = 0, due: int = 0, **fields: object) -> Record:
    record = replace(started(START), attempts=attempts, due_at=START + due)
    return replace(record, **fields)  # type: ignore[arg-type]


def done(status: str = CONFIRMED, finality: str = INCLUDED, **fields: object) -> Record:
    record = pending(3, status=status, mined=mined(), finality=finality, **fields)
    return replace(record, due_at=START)


def test_a_transaction_begins_pending_with_its_first_check_at_once() -> None:
    record = started(START)
    assert (record.status, record.attempts, record.created_at) == (PENDING, 0, START)
    assert record.due_at == START
    assert record.last_checked is None


# The table of section 3: attempts before, milliseconds since the start, what is found; then the
# state, attempts, and milliseconds until the next check.
ROWS = [
    (0, 0, "0x1", CONFIRMED, 0, None),
    (0, 0, "0x0", FAILED, 0, None),
    (0, 0, None, PENDING, 1, 15_000),
    (1, 15_000, None, PENDING, 2, 30_000),
    (1, 15_000, "0x1", CONFIRMED, 1, None),
    (60, 1_785_000, None, PENDING, 61, 30_000),
    (60, 1_785_000, "0x0", FAILED, 60, None),
    (120, HOUR - 1, None, PENDING, 121, 30_000),
    (120, HOUR, None, PENDING, 121, 30_000),
    (120, HOUR + 1, None, STALLED, 121, LATE_DELAY),
    (121, HOUR + 15_000, None, STALLED, 122, LATE_DELAY),
    (121, HOUR + 15_000, "0x1", CONFIRMED, 121, None),
    (0, HOUR + 1, None, STALLED, 1, LATE_DELAY),
]


@pytest.mark.parametrize(("attempts", "at", "results", "status", "after", "delay"), ROWS)
def test_a_timed_check_follows_the_table(
    attempts: int, at: int, results: str | None, status: str, after: int, delay: int | None
) -> None:
    now = START + at
    new = next_state(pending(attempts, at), mined(results) if results else None, now)
    assert (new.status, new.attempts) == (status, after)
    assert new.due_at == (None if delay is None else now + delay)
    if results is None:
        assert new.last_checked == now
        assert new.mined is None
    else:
        assert new.last_checked is None, "set by checks that find nothing alone"
        assert new.mined is not None
        assert (new.mined.block_number, new.mined.gas_used) == (16, "21000")
        assert new.mined.effective_gas_price == str(2**256 - 1)
        assert new.finality == INCLUDED


def test_without_any_receipt_it_stalls_at_check_122_after_3615_seconds() -> None:
    record, checks = started(START), []
    while record.status == PENDING:
        assert record.due_at is not None
        checks.append(record.due_at - START)
        record = next_state(record, None, record.due_at)
    assert checks[:4] == [0, 15_000, 45_000, 75_000]
    assert checks[-1] == 3_615_000
    assert (record.status, record.attempts, len(checks)) == (STALLED, 122, 122)


def test_checks_that_are_a_little_late_don_t_add_up() -> None:
    record = started(START)
    while record.status == PENDING:
        assert record.due_at is not None
        record = next_state(record, None, record.due_at + 999)
    assert record.attempts == 122


def test_after_a_long_silence_the_next_check_keeps_its_distance() -> None:
    late = START + 600_000
    assert next_state(pending(5, 105_000), None, late).due_at == late + 30_000


@pytest.mark.parametrize(
    "record", [pending(), pending(7, 200_000), done(), done(FAILED), pending(status=STALLED)]
)
def test_a_new_block_without_it_changes_nothing(record: Record) -> None:
    assert next_state(record, None, START + 2 * HOUR, timed=False) == record


@pytest.mark.parametrize(("status", "state"), [("0x1", CONFIRMED), ("0x0", FAILED)])
def test_a_new_block_with_it_ends_it(status: str, state: str) -> None:
    new = next_state(pending(7, 200_000), mined(status), START + 190_000, timed=False)
    assert (new.status, new.attempts, new.due_at, new.last_checked) == (state, 7, None, None)


@pytest.mark.parametrize(
    ("failures", "pause"),
    [(1, 1_000), (2, 2_000), (3, 4_000), (5, 16_000), (6, 30_000), (100, 30_000)],
)
def test_a_node_that_fails_is_queried_again_after_1_to_30_seconds(
    failures: int, pause: int
) -> None:
    assert pause_after(failures) == pause


# -- Receipts -------------------------------------------------------------------------------------


def test_a_receipt_is_read_as_the_specification_wants_it() -> None:
    transition = mined_by(receipt(effective_gas_price="0x77359400"))
    assert transition == Mined(True, 16, "0x" + "aa" * 32, 2, "21000", "2000000000", ADDRESS, None)


def test_a_receipt_from_before_byzantium_has_no_status_and_counts_as_success() -> None:
    assert mined_by(receipt(None)).succeeded


def test_a_receipt_may_not_say_what_was_paid() -> None:
    assert mined_by(receipt(effective_gas_price=None)).effective_gas_price is None


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "0x2"},
        {"status": ""},
        {"block_number": "0x" + "f" * 16},
        {"block_number": "latest"},
        {"block_hash": "0x12"},
        {"gas_used": "-0x1"},
        {"gas_used": "0x1" + "0" * 64},
        {"from_address": "0x12"},
    ],
)
def test_what_can_t_be_a_receipt_is_none(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|out of range|expected|unknown"):
        mined_by(receipt(**fields))


# -- Reorganisations ------------------------------------------------------------------------------


def test_one_in_another_block_is_moved_in_place() -> None:
    new = next_state(done(), mined("0x0", "bb"), START + 9)
    assert (new.status, new.finality, new.reorg_count, new.due_at) == (FAILED, INCLUDED, 1, None)
    assert new.mined is not None
    assert new.mined.block_hash == "0x" + "bb" * 32


def test_one_whose_block_has_come_back_stays_as_it_was() -> None:
    assert next_state(done(finality=SAFE), mined(), START + 9) == replace(
        done(finality=SAFE), due_at=None
    )


def test_one_without_a_block_is_pending_again_with_an_hour_of_its_own() -> None:
    now = START + 2 * HOUR
    new = next_state(done(), None, now)
    assert (new.status, new.finality, new.reorg_count) == (PENDING, ORPHANED, 1)
    assert (new.mined, new.pending_since, new.due_at) == (None, now, now + 15_000)
    later = next_state(new, None, now + HOUR)
    assert later.status == PENDING
    assert next_state(later, None, now + HOUR + 1).status == STALLED
    again = next_state(later, mined(block="bb"), now + 20_000)
    assert (again.status, again.reorg_count, again.finality) == (CONFIRMED, 1, INCLUDED)


def test_without_reopening_the_specification_s_fields_stay() -> None:
    literal = Choices(reopen=False)
    for results in (None, mined("0x0", "bb")):
        new = next_state(done(), results, START + 9, choices=literal)
        assert (new.status, new.mined, new.attempts) == (CONFIRMED, mined(), 3)
        assert (new.finality, new.reorg_count, new.due_at) == (ORPHANED, 1, None)
        back = next_state(new, mined(), START + 10, timed=False, choices=literal)
        assert (back.finality, back.reorg_count) == (INCLUDED, 1)


@pytest.mark.parametrize("results", [None, mined(block="bb")])
def test_what_is_final_never_changes(results: Mined | None) -> None:
    record = done(finality=FINALIZED)
    assert next_state(record, results, START + 9) == replace(record, due_at=None)


# -- Stalled --------------------------------------------------------------------------------------


def stalled() -> Record:
    return pending(122, HOUR, status=STALLED)


def test_a_stalled_one_that_is_mined_later_stays_stalled_with_a_late_receipt() -> None:
    now = START + HOUR + 600_000
    new = next_state(stalled(), mined(), now)
    assert (new.status, new.late, new.mined) == (STALLED, mined(), None)
    assert new.due_at == now + LATE_DELAY, "the receipt may go again"
    assert next_state(new, None, now + LATE_DELAY).late is None


def test_it_is_looked_for_during_a_day() -> None:
    end = START + HOUR + LATE_WATCH
    assert next_state(stalled(), None, end).due_at == end + LATE_DELAY
    assert next_state(stalled(), None, end + 1).due_at is None


def test_a_deployment_may_have_it_confirmed() -> None:
    new = next_state(stalled(), mined(), START + 2 * HOUR, choices=Choices(revive=True))
    assert (new.status, new.mined, new.late, new.due_at) == (CONFIRMED, mined(), mined(), None)
    assert new.finality == INCLUDED


# -- Whatever happens -----------------------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 600_000),
        st.booleans(),
        st.sampled_from([None, None, None, ("0x1", "aa"), ("0x0", "bb"), ("0x1", "bb")]),
    ),
    max_size=60,
)


@given(EVENTS, st.booleans(), st.booleans())
def test_whatever_happens_a_record_makes_sense(
    events: list[tuple[int, bool, tuple[str, str] | None]], reopen: bool, revive: bool
) -> None:
    choices = Choices(reopen, revive)
    record, now = started(START), START
    for pause, timed, results in events:
        now += pause
        if record.status in (CONFIRMED, FAILED) and timed:
            record = replace(record, due_at=now)  # a reorganisation
        transition = mined(*results) if results else None
        new = next_state(record, transition, now, timed=timed, choices=choices)
        assert new.created_at == record.created_at
        assert new.status in (PENDING, CONFIRMED, FAILED, STALLED)
        counts = timed and transition is None and record.status == PENDING
        assert new.attempts == record.attempts + counts
        assert new.last_checked == (now if counts else record.last_checked)
        assert (new.mined is not None) == (new.status in (CONFIRMED, FAILED))
        assert new.mined is None or new.mined.status == new.status
        assert new.reorg_count - record.reorg_count in (0, 1)
        if new.status == PENDING:
            assert new.due_at is not None
            assert new.due_at > now or new == record
        if new.status in (CONFIRMED, FAILED):
            assert new.due_at is None or new == record
        if new.status == STALLED and record.status == PENDING:
            assert counts
            assert now - record.since > HOUR
        if not reopen and record.status in (CONFIRMED, FAILED):
            assert (new.status, new.mined) == (record.status, record.mined)
        if not revive and record.status == STALLED:
            assert new.status == STALLED
        record = new
