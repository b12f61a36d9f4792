"""Random scenarios of a chain that grows and is reorganised while its providers lie."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from django.db import connection

from chain.core.failures import NodeFailure
from chain.indexing import head as following
from chain.indexing.head import indexer
from chain.indexing.history.backfill import advance
from chain.indexing.repair.audits import audit
from chain.models import Backfill
from chain.rpc import pool
from tests.chain.backfills import forget_contracts
from tests.chain.false_fields import Twister
from tests.chain.indexed_network import Network, let_a_minute_pass, listen, network
from tests.chain.ledger import Comparison, Event, Ledger, compare, followed, replayed, shown
from tests.chain.rpc.networks import provider
from tests.evm.artefacts import Contract
from tests.evm.liar import KINDS, Kind, Liar, Lie
from tests.evm.node import Node
from tests.evm.proxy import proxied

ABOUT_LOGS: tuple[Kind, ...] = ("drop", "invent", "change", "retopic", "reorder", "delay")
PAGES: tuple[Kind, ...] = ("shuffle", "truncate")
WITHHOLDING: tuple[Kind, ...] = ("drop", "delay", "truncate")
RACES = 0.05  # of the requests


@dataclass
class Counts:
    """What has happened in scenarios, and what was wrong."""

    did: Counter[str]
    lies: Counter[str]
    wrong: Counter[str]
    examples: list[str]

    @classmethod
    def none(cls) -> Counts:
        return cls(Counter(), Counter(), Counter(), [])

    def add(self, other: Counts) -> None:
        for mine, theirs in (
            (self.did, other.did),
            (self.lies, other.lies),
            (self.wrong, other.wrong),
        ):
            mine.update(theirs)
        self.examples += other.examples

    def __str__(self) -> str:
        parts = [("did", self.did), ("lies", self.lies), ("wrong", self.wrong)]
        texts = [f"{name}: {dict(sorted(counter.items()))}" for name, counter in parts]
        return "\n".join([*texts, *self.examples[:20]])


def play(
    node: Node, seed: int, *, providers: int, verify: str, kind: type[Scenario] | None = None
) -> Counts:
    """One scenario from the first block to the comparison at its end."""
    _forget_everything()
    node.reset()
    with ExitStack() as stack:
        world = stack.enter_context(network(node, verify=verify))
        scenario = (kind or Scenario)(world, seed, verify, stack, providers)
        scenario.run()
        return scenario.counts


def _forget_everything() -> None:
    """Empty the tables of the chain app, and what processes remember of them."""
    names = [
        name
        for name in connection.introspection.table_names()
        if name.startswith("chain_") and name != "chain_outbox_epoch"
    ]
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(names)}")
    forget_contracts()
    pool.forget()
    indexer.forget()


class Scenario:
    def __init__(
        self, world: Network, seed: int, verify: str, stack: ExitStack, providers: int
    ) -> None:
        self.world = world
        self.node = world.node
        self.verify = verify
        self.random = Random(f"{seed} {providers} {verify}")
        self.counts = Counts.none()
        self.name = f"seed {seed}, {providers} providers, verify={verify}"
        self._lock = threading.Lock()
        self._acts = 0
        # Transactions need their block at once only where contracts are deployed.
        self.node.automine(True)
        self.late: Contract = self.node.deployed("Gem")
        self.node.automine(False)
        self.ledger = Ledger(self.node)
        self.proxies = [world.proxy]
        self.liars = [Liar(world.proxy, seed)]
        self.twisters = [Twister(self.random)]
        self.second = providers > 1 and self.random.choice(["honest", "honest", "liar", "same"])
        self.reorganises = self.random.random() < 0.5
        self.is_late_registered = self.random.random() < 0.4
        self.pauses = self.random.random() < 0.3
        self.twists = self.random.random() < 0.3
        self.audits_failed = False
        self.passed = 0
        """The last block that an audit has compared with receipts that may have been false."""
        self.withheld = 0
        """The last block that an audit has compared with ranges that logs may be missing from."""
        if providers > 1:
            proxy = stack.enter_context(proxied(self.node))
            self.proxies.append(proxy)
            provider(world.proxy.url, "first", world.network_id)
            provider(proxy.url, "second", world.network_id)
            if self.second != "honest":
                self.liars.append(Liar(proxy, seed if self.second == "same" else seed + 1))
                self.twisters.append(Twister(self.random))

    def run(self) -> None:
        self._begin()
        rounds = self.random.randrange(3, 6)
        late_at, pause_at = self.random.randrange(rounds), self.random.randrange(rounds)
        for number in range(rounds):
            self._lie()
            if self.is_late_registered and number == late_at:
                listen(self.world, self.late, name="Late")
                self.counts.did["late contracts"] += 1
            if self.pauses and number == pause_at:
                self._pause()
            for _ in range(self.random.randrange(1, 4)):
                self._act()
            for _ in range(self.random.randrange(1, 4)):
                self._read()
            if self.random.random() < 0.4:
                let_a_minute_pass()
            if self.random.random() < 0.2:
                indexer.forget()
        if self.verify != "all":
            self._audit()
        self._make_honest()
        self._end()

    # -- Parts of a scenario -----------------------------------------------------------------------

    def _begin(self) -> None:
        """Read the first blocks from honest providers, which teaches what headers prove."""
        listen(self.world)
        self.node.mine(2)
        self.ledger.note()
        self.world.follow()
        self.world.mint(2)
        self.ledger.note()
        self.world.follow()
        assert not len(compare(self.ledger))

    def _lie(self) -> None:
        lies = self._drawn()
        for liar, twister in zip(self.liars, self.twisters, strict=True):
            if not (self.second == "same" and liar is not self.liars[0]):
                lies = lies if liar is self.liars[0] else self._drawn()
            liar.lie(*lies)
            twister.rate = self.random.choice([0.05, 0.3]) if self.twists else 0.0
            liar.proxy.on_reply(twister.twist)
            if self.reorganises:
                liar.proxy.on_request(self._race)

    def _drawn(self, *, in_logs_only: bool = False) -> list[Lie]:
        random, head = self.random, self.node.head
        lies = []
        for _ in range(random.randrange(1, 4)):
            first = random.choice([0, 0, head - 3, head + 1, head + 2, head + 5])
            lie = Lie(
                random.choice(ABOUT_LOGS + PAGES),
                rate=random.choice([1.0, 0.5, 0.2, 0.05]),
                first=first,
                last=random.choice([None, None, first + 2, first + 20]),
                is_consistent=random.random() < 0.75,
                seconds=0.05,
                most=random.randrange(1, 6),
            )
            if lie.kind in ABOUT_LOGS and not in_logs_only:
                in_receipts = random.random() < 0.4
                in_bloom = random.random() < (0.5 if in_receipts else 0.1)
                lie = replace(lie, in_receipts=in_receipts, in_bloom=in_bloom)
            if not in_logs_only and random.random() < 0.15:
                lie = replace(
                    lie,
                    kind=random.choice(["no bloom", "wrong hash", "other chain"]),
                    in_receipts=False,
                    in_bloom=False,
                )
            lies.append(lie)
        if not in_logs_only and random.random() < 0.05:
            lies.append(Lie("forge"))  # below what is final; above it, that is a reorganisation
        return lies

    def _act(self) -> None:
        """Something happens on the chain."""
        with self._lock:
            self._acts += 1
            kind = self.random.random()
            if self.reorganises and kind < 0.3:
                depth = self.random.randrange(1, 6)
                if self.node.head - depth > self.ledger.base + 3:
                    self.counts.did["reorganisations"] += 1
                    self._reorganise(depth)
            elif kind < 0.45:
                self.node.mine(self.random.randrange(1, 4))
            else:
                for _ in range(self.random.randrange(1, 4)):
                    self._send()
                    self.node.mine()
            self.ledger.note()

    def _send(self) -> None:
        contract = self.random.choice([self.world.gem, self.world.gem, self.late])
        for _ in range(self.random.randrange(1, 3)):
            if self.random.random() < 0.5:
                contract.transact("spam", self.random.randrange(1, 4), gas=2_000_000)
            else:
                contract.transact("spamMinted", self.random.randrange(1, 3), 0, gas=2_000_000)

    def _reorganise(self, depth: int) -> None:
        requests = [
            (self.world.gem.request("spam", self.random.randrange(1, 4)), place)
            for place in range(depth)
            if self.random.random() < 0.5
        ]
        self.node.reorg(depth, requests)

    def _race(self, calls: Any) -> None:
        if self.random.random() < RACES and self._acts < 40:
            self.counts.did["races"] += 1
            self._act()

    def _pause(self) -> None:
        """Nothing is read for hundreds of blocks."""
        self.counts.did["pauses"] += 1
        with self._lock:
            for _ in range(8):
                self.node.mine(self.random.randrange(40, 60))
                self._send()
                self.node.mine()
                self.ledger.note()
        indexer._tags_asked.clear()

    def _read(self) -> None:
        self._while_reading(self.random.choice([self._follow, self._follow, self._step]))
        if self.random.random() < 0.7:
            self._while_reading(lambda: advance(self.world.network_id, 1.0))
        if self.random.random() < 0.15:
            self._while_reading(self._audit_once)

    def _audit_once(self) -> None:
        audit(self.world.network_id)
        lies = [lie for liar in self.liars for lie in liar.lies]
        audited = self.world.cursor.audited or 0
        if any(lie.in_receipts for lie in lies) or any(each.rate for each in self.twisters):
            self.passed = max(self.passed, audited)
        if any(lie.kind in WITHHOLDING for lie in lies):
            self.withheld = max(self.withheld, audited)

    def _follow(self) -> None:
        self.world.follow()

    def _step(self) -> None:
        with suppress(NodeFailure, following.Elsewhere):
            following.step(self.world.network_id)

    def _while_reading(self, read: Callable[[], object]) -> None:
        """Read, then compare everything that must hold at any time."""
        read()
        self.counts.did["readings"] += 1
        with self._lock:
            self._check_subscribers()
            comparison = compare(self.ledger)
            if self.verify == "all":
                self._note("stored wrongly at verify=all", comparison.wrong)
                self._note("missing at verify=all", comparison.missing)
            elif len(comparison):
                self.counts.did["readings with something wrong (sample)"] += 1

    def _check_subscribers(self) -> None:
        network_id = self.world.network_id
        events = shown(network_id)
        sent = replayed(network_id)
        self._note("sent otherwise than stored", followed(network_id, events ^ sent))

    def _note(self, what: str, events: set[Event]) -> None:
        if events:
            self.counts.wrong[what] += len(events)
            self.counts.examples.append(f"{self.name}: {what}: {sorted(events)[:2]}")

    # -- Its end -----------------------------------------------------------------------------------

    def _settle(self, *lies: Lie) -> None:
        """From now on no provider lies but in these ways, and nothing happens meanwhile."""
        for liar, twister in zip(self.liars, self.twisters, strict=True):
            twister.rate = 0.0
            liar.proxy.on_request(lambda calls: None)
            liar.lie(*lies)
        let_a_minute_pass()
        indexer._tags_asked.clear()  # what is final is known by then

    def _audit(self) -> None:
        """Two audits, or as many as ten minutes have while they fail: the providers lie about logs
        but not in receipts, or are honest."""
        network_id = self.world.network_id
        still_lying = self.random.random() < 0.5
        self._settle()
        self._outgrow()
        self._follow()
        if still_lying:
            self._settle(*self._drawn(in_logs_only=True))
            self._act()
            self._follow()
        before = compare(self.ledger)
        cursor = self.world.cursor
        reads = f"{cursor.number} {cursor.halted}"
        for minute in range(10):
            findings = audit(network_id)
            let_a_minute_pass()
            self._check_subscribers()
            if minute and findings is not None:
                break
        else:
            # Answers that are no answers: the cursor says so, and the next audits make up for it.
            self.counts.did["audits that failed for ten minutes"] += 1
            if "trouble" not in (self.world.cursor.audit or ""):
                self._wrong("an audit that fails says nothing", str(self.world.cursor.audit))
            self.audits_failed = True
            return
        history, remaining = self._by_place(compare(self.ledger))
        self.counts.did["wrong before the audits"] += len(before)
        self.counts.did["not compared any more"] += len(history)
        when = "lying" if still_lying else "honest"
        self._note(f"left after two audits ({when}, {reads}, {self.liars[0].lies})", remaining)

    def _by_place(self, comparison: Comparison) -> tuple[set[Event], set[Event]]:
        """What is wrong in blocks that audits don't compare any more, and the rest: a sample isn't
        meant to find what one provider has falsified in receipts as well, nor a block that it has
        left out of ranges whenever they were read. Those are the blocks of history, which backfills
        read, those of audits that were given false receipts, and those without a stored event of
        audits from which logs were withheld."""
        events = comparison.wrong | comparison.missing
        network_id = self.world.network_id
        with_events = {event[0] for event in shown(network_id)}
        remaining = {
            event
            for event in followed(network_id, events)
            if self.verify == "all"
            or (event[0] > self.passed and (event[0] > self.withheld or event[0] in with_events))
        }
        return events - remaining, remaining

    def _outgrow(self) -> None:
        """A shorter chain of the same blocks is a node that's behind, not another chain."""
        self.node.mine(max(1, (self.world.cursor.number or 0) - self.node.head + 1))
        self.ledger.note()

    def _make_honest(self) -> None:
        self._settle()
        self._outgrow()
        for _ in range(5):
            self._follow()
            Backfill.objects.update(paused_until=None)
            advance(self.world.network_id, 5.0)
        if self.audits_failed:
            for _ in range(2):
                audit(self.world.network_id)

    def _end(self) -> None:
        cursor = self.world.cursor
        self.counts.did["scenarios"] += 1
        self.counts.did["contradictions"] += cursor.contradictions
        if cursor.contradictions:
            self.counts.did["scenarios with contradictions"] += 1
        self.counts.did["mended"] += cursor.mended
        for liar in self.liars:
            for kind in KINDS:
                self.counts.lies[kind] += len(liar.lies_about(kind))
        for twister in self.twisters:
            self.counts.lies["twisted"] += twister.twisted
        if cursor.halted is not None:
            self._wrong("halted", str(cursor.halted))
        if (cursor.number, cursor.hash) != (self.node.head, self.node.block()["hash"]):
            self._wrong("not read to the end", f"{cursor.number}, {cursor.trouble}")
        if Backfill.objects.filter(done_at=None).exists():
            self._wrong("backfill not done", str(Backfill.objects.get(done_at=None).trouble))
        history, remaining = self._by_place(compare(self.ledger))
        self._check_subscribers()
        if self.verify == "all":
            remaining |= history
        self._note("wrong at the end", remaining)

    def _wrong(self, what: str, text: str) -> None:
        self.counts.wrong[what] += 1
        self.counts.examples.append(f"{self.name}: {what}: {text}")
