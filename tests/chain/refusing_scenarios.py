"""Random scenarios of providers that lie and refuse, with texts that no list knows."""

from __future__ import annotations

from contextlib import ExitStack

from chain.indexing.history.backfill import advance
from chain.models import Backfill
from tests.chain.false_fields import Twister
from tests.chain.indexed_network import Network
from tests.chain.lying_scenarios import Scenario
from tests.evm.liar import Lie
from tests.evm.proxy import ReplyHook
from tests.evm.refuser import Refusal, Refuser

READS = frozenset({"eth_getLogs", "eth_getBlockByNumber", "eth_getBlockByHash", "eth_call"})


class RefusingScenario(Scenario):
    """As ``Scenario``, shorter, while providers refuse as well. What one refuses that no smaller
    request would be answered, another one answers: so everything is read in the end."""

    def __init__(
        self, world: Network, seed: int, verify: str, stack: ExitStack, providers: int
    ) -> None:
        super().__init__(world, seed, verify, stack, providers)
        self.refusers = [self._limited() for _ in self.proxies]
        if providers > 1:
            self.refusers[self.random.randrange(2)] = self._refusing()
        self.name += f", {self.refusers}"

    def run(self) -> None:
        self._begin()
        self._lie()
        for _ in range(self.random.randrange(1, 4)):
            self._act()
        self._read()
        if self.random.random() < 0.3:
            self._pause()
            self._read()
        self._make_honest()
        self._end()
        self.counts.did["refusals"] += sum(refuser.refused for refuser in self.refusers)

    def _lie(self) -> None:
        if self.verify == "all":  # otherwise lies remain until an audit
            super()._lie()
        self._refuse()

    def _make_honest(self) -> None:
        """Read on as long as there is progress, however slow."""
        self._settle()
        self._outgrow()
        before, place = None, self._place()
        while place != before:
            for _ in range(3):
                self._follow()
                Backfill.objects.update(paused_until=None)
                advance(self.world.network_id, 5.0)
            before, place = place, self._place()

    def _place(self) -> tuple[object, ...]:
        rows = Backfill.objects.order_by("pk").values_list("pk", "next_block", "done_at")
        return self.world.cursor.number, *rows

    def _settle(self, *lies: Lie) -> None:
        super()._settle(*lies)
        self._refuse()

    def _refuse(self) -> None:
        """Refuse as well as lie."""
        twisters = [*self.twisters, None]
        for proxy, twister, refuser in zip(self.proxies, twisters, self.refusers, strict=False):
            proxy.on_request(refuser.request)
            proxy.on_reply(_both(twister, refuser))

    def _limited(self) -> Refuser:
        """Small requests are answered."""
        random = self.random
        kind = random.choice(["blocks", "blocks", "contracts", "both", "none"])
        return Refuser(
            Refusal.drawn(random),
            most_blocks=random.choice([1, 2, 5, 20]) if kind in ("blocks", "both") else None,
            most_contracts=1 if kind in ("contracts", "both") else None,
        )

    def _refusing(self) -> Refuser:
        """Nothing is answered, or nothing of the past."""
        random = self.random
        kind = random.choice(["logs", "past", "reads", "one"])
        methods = {
            "logs": frozenset({"eth_getLogs"}),
            "past": frozenset[str](),
            "reads": READS,
            "one": frozenset({random.choice([*sorted(READS), "eth_chainId"])}),
        }[kind]
        lowest = 10**9 if kind == "past" else 0
        return Refuser(Refusal.drawn(random), methods=methods, lowest=lowest)


def _both(twister: Twister | None, refuser: Refuser) -> ReplyHook:
    if twister is None:
        return refuser.reply
    return lambda replies: refuser.reply(twister.twist(replies))
