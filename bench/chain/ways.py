"""The ways from a log on the chain to a row in PostgreSQL: ours, the usual ones, and the wall."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.chain.stage import Cost, Job, empty, listen, measured, register, stored

_BLOCKS = 20
"""Blocks read at once by those who don't find it out themselves: 10,000 events."""
_USUAL_BATCH = 500
_EACH = 2_000
_BULK = 20_000

Way = Callable[[Job], dict[str, Any]]


def ours(job: Job) -> dict[str, Any]:
    """The backfill, as a worker runs it, from the registration of the contract on."""
    from chain.indexing import head
    from chain.indexing.history import backfill
    from chain.models import Backfill

    empty()
    register(job)
    head.follow(job.chain_id)
    listen(job)
    with measured(job) as cost:
        head.follow(job.chain_id)
        while Backfill.objects.filter(done_at=None).exists():
            backfill.advance(job.chain_id)
    _check(job)
    return cost.figures(job.events)


def again(job: Job) -> dict[str, Any]:
    """The same blocks once more: every event is there already."""
    from chain.indexing.history import backfill
    from chain.models import Backfill

    ours(job)
    # Without the width of the empty blocks at the end, which would be that of the first request.
    Backfill.objects.update(done_at=None, next_block=0, step=0)
    with measured(job) as cost:
        while Backfill.objects.filter(done_at=None).exists():
            backfill.advance(job.chain_id)
    _check(job)
    return cost.figures(job.events)


def stages(job: Job) -> dict[str, Any]:
    """Ours, one stage after the other: asking the node, decoding, storing."""
    from django.db import transaction

    from chain import rpc
    from chain.indexing import contracts
    from chain.indexing.storage import events as storing

    empty()
    register(job)
    listen(job)
    known = contracts.catalogue(job.chain_id)
    asking, decoding, inserting = Cost(), Cost(), Cost()
    for first, last in _ranges(job):
        with measured(job, asking):
            logs = rpc.attempt(
                job.chain_id, lambda node, a=first, b=last: node.logs(known.wanted, a, b)
            )
        with measured(job, decoding):
            ready = storing.make_ready(known.read(logs))
        with measured(job, inserting), transaction.atomic():
            storing.store_ready(job.chain_id, [ready])
    _check(job)
    return {
        "asking": asking.figures(job.events),
        "decoding": decoding.figures(job.events),
        "inserting": inserting.figures(job.events),
    }


def wall(job: Job) -> dict[str, Any]:
    """PostgreSQL's part alone: rows that are ready, COPY into a temporary table, INSERT … ON
    CONFLICT into ours, 10,000 a transaction. Nothing that stores exactly once can be quicker."""
    from django.db import connection, transaction

    from chain import rpc
    from chain.indexing import contracts
    from chain.indexing.storage import events as storing

    empty()
    register(job)
    listen(job)
    known = contracts.catalogue(job.chain_id)
    # Ready rows: what our own way writes, taken out of the table that it has filled.
    for first, last in _ranges(job):
        logs = rpc.attempt(
            job.chain_id, lambda node, a=first, b=last: node.logs(known.wanted, a, b)
        )
        with transaction.atomic():
            storing.store_events(job.chain_id, known.read(logs), after_seq=None)
    columns = (
        "object_id, created_at, updated_at, data, network_id, contract_name, event_name, address,"
        " transaction_hash, block_number, block_hash, log_index, transaction_index, ordinal, args,"
        " timestamp, canonical"
    )
    with connection.cursor() as cursor:
        with cursor.copy(
            f"COPY (SELECT {columns} FROM chain_contract_event"
            " ORDER BY block_number, log_index) TO STDOUT"
        ) as copy:
            lines = b"".join(bytes(part) for part in copy).splitlines(keepends=True)
        cursor.execute("TRUNCATE chain_contract_event")
        cursor.execute("CHECKPOINT")
        cursor.execute(
            f"CREATE TEMPORARY TABLE wall ON COMMIT DELETE ROWS AS"
            f" SELECT {columns} FROM chain_contract_event LIMIT 0"
        )
        step = _BLOCKS * 500
        parts = [b"".join(lines[at : at + step]) for at in range(0, len(lines), step)]
        with measured(job) as cost:
            for part in parts:
                with transaction.atomic():
                    with cursor.copy("COPY wall FROM STDIN") as copy:
                        copy.write(part)
                    cursor.execute(
                        f"INSERT INTO chain_contract_event ({columns}) SELECT * FROM wall"
                        " ON CONFLICT DO NOTHING"
                    )
    _check(job)
    return cost.figures(job.events)


def each(job: Job) -> dict[str, Any]:
    """web3.py and ``get_or_create``, an event at a time: the way of most scripts."""
    from chain.models import ContractEvent

    empty()
    contract, count = _contract(job), 0
    with measured(job) as cost:
        for first, last in _ranges(job, _EACH):
            for event in contract.events.Transfer().get_logs(from_block=first, to_block=last):
                fields = _fields(job, event)
                identity = {
                    name: fields.pop(name)
                    for name in ("network_id", "block_number", "block_hash", "log_index")
                }
                ContractEvent.objects.get_or_create(**identity, defaults=fields)
                count += 1
    assert stored() == count
    return cost.figures(count)


def bulk(job: Job) -> dict[str, Any]:
    """web3.py and ``bulk_create(ignore_conflicts=True)``: the way of services on Django, Safe's
    among them."""
    from django.db import transaction

    from chain.models import ContractEvent

    empty()
    contract, count = _contract(job), 0
    with measured(job) as cost:
        for first, last in _ranges(job, _BULK):
            events = contract.events.Transfer().get_logs(from_block=first, to_block=last)
            with transaction.atomic():
                ContractEvent.objects.bulk_create(
                    [ContractEvent(**_fields(job, event)) for event in events],
                    ignore_conflicts=True,
                    batch_size=_USUAL_BATCH,
                )
            count += len(events)
    assert stored() == count
    return cost.figures(count)


def decoders(job: Job) -> dict[str, Any]:
    """Decoding alone, ours beside web3's ``process_log``."""
    from chain import rpc
    from chain.indexing import contracts

    empty()
    register(job)
    listen(job)
    known = contracts.catalogue(job.chain_id)
    logs = [
        log
        for block in range(job.first, job.last + 1)  # one answer of all would be too large
        for log in rpc.attempt(job.chain_id, lambda node, at=block: node.logs(known.wanted, at, at))
    ]
    known.read(logs[:100])
    repeated = max(1, 200_000 // len(logs))
    with measured(job) as own:
        for _ in range(repeated):
            known.read(logs)
    contract, web3 = _contract(job, with_web3=True)
    few = web3.eth.get_logs(
        {"address": contract.address, "fromBlock": job.first, "toBlock": job.first + 9}
    )
    name = next(row.event_name for row in known.read(logs[:1]))
    event = contract.events[name]()
    with measured(job) as theirs:
        for log in few:
            event.process_log(log)
    return {"ours": own.figures(len(logs) * repeated), "web3": theirs.figures(len(few))}


def _contract(job: Job, *, with_web3: bool = False) -> Any:
    from chain.rpc.web3_library import web3

    library = web3()
    client = library.Web3(library.HTTPProvider(job.url, request_kwargs={"timeout": 120}))
    contract = client.eth.contract(address=client.to_checksum_address(job.address), abi=job.abi)
    return (contract, client) if with_web3 else contract


def _fields(job: Job, event: Any) -> dict[str, Any]:
    from django.utils import timezone

    from objects.core.names import new_object_id

    now = timezone.now()
    return {
        "object_id": new_object_id(),
        "created_at": now,
        "updated_at": now,
        "data": {},
        "network_id": str(job.chain_id),
        "contract_name": "Gem",
        "event_name": event["event"],
        "address": event["address"],
        "transaction_hash": event["transactionHash"].to_0x_hex(),
        "block_number": event["blockNumber"],
        "block_hash": event["blockHash"].to_0x_hex(),
        "log_index": event["logIndex"],
        "transaction_index": event["transactionIndex"],
        "ordinal": event["logIndex"],
        "args": json.loads(json.dumps(dict(event["args"]), default=str)),
        "timestamp": now,
    }


def _ranges(job: Job, most: int | None = None) -> Iterator[tuple[int, int]]:
    last = job.last if most is None else min(job.last, job.first + max(1, most // 500) - 1)
    for first in range(job.first, last + 1, _BLOCKS):
        yield first, min(first + _BLOCKS - 1, last)


def _check(job: Job) -> None:
    found = stored()
    if found != job.events:
        raise SystemExit(f"{found} events are stored, {job.events} are on the chain")


WAYS: Sequence[Way] = (ours, again, stages, wall, each, bulk, decoders)
