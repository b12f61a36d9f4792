"""What ``manage.py doctor`` looks at in the chain: whether each network can be followed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.db.models import Count, Max, Min
from django.utils import timezone

from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.kernel.texts.counted import counted
from backend.settings.conf import service_settings
from chain.core.names import is_provider_name
from chain.indexing.head.halts import advice as advice_for
from chain.models import Backfill, Blockchain, Cursor, Provider
from chain.networks.lag import UNKNOWN, Lag, lags
from chain.rpc.client.secret_address import secrets_of
from chain.rpc.endpoints import Given, given_for
from chain.rpc.probes import Look, look_at
from chain.sending import doctor  # noqa: F401 (registers)
from objects.database import maintenance

_NEEDS = (DATABASE, "migrations")
_MOST: Final = 25  # networks that are looked at
_PATIENCE: Final = 3.0
_LIKE_A_KEY: Final = 20  # characters of a part of an address


@check("networks", needs=_NEEDS, seconds=30)
def networks() -> Iterator[Finding]:
    """Whether each network's endpoints answer, for the right network, and without lag."""
    followed = [*Blockchain.objects.filter(active=True, network_id__isnull=False)[:_MOST]]
    endpoints = [(network, given_for(network.network_id or 0)) for network in followed]
    answers = iter(look_at([each for _, some in endpoints for each in some], seconds=_PATIENCE))
    for network, some in endpoints:
        yield from _of_network(network, some, [next(answers) for _ in some])


@check("public endpoints", needs=_NEEDS)
def public_endpoints() -> Iterator[Finding]:
    """Whether what is shown to everybody has a key in it."""
    shown = [
        (network, field)
        for network in Blockchain.objects.filter(network_id__isnull=False)
        for field, url in (
            ("rpcEndpoint", network.rpc_endpoint),
            ("wssEndpoint", network.wss_endpoint),
        )
        if url and _has_key(url)
    ]
    for network, field in shown[:_MOST]:
        yield warn(
            f"{network}: {field} seems to have a key in it, and everybody may read it.",
            "Add the endpoint with the key as a provider (script/manage chain_provider add"
            f" {network.network_id} NAME), and give the network a {field} without one.",
        )
    if not shown:
        yield ok("none has a key in it")


@check("provider names", needs=_NEEDS)
def provider_names() -> Iterator[Finding]:
    """Whether every provider can be reached over REST by its name."""
    unreachable = [row for row in Provider.objects.all() if not is_provider_name(row.name)]
    for row in unreachable[:_MOST]:
        yield warn(
            f"network {row.network_id}: the provider {row.name!r} has a name that some clients and"
            " proxies can't send in a path.",
            "Rename it: script/manage chain_provider set NETWORK NAME --name NEW, or in the admin.",
        )
    if not unreachable:
        yield ok("all can be reached")


@check("indexed networks", needs=_NEEDS)
def indexed_networks() -> Iterator[Finding]:
    """Whether reading has stopped anywhere, and how far each network is behind."""
    # What a removed network has left isn't synced.
    there = Blockchain.objects.filter(network_id__isnull=False).values("network_id")
    halted = [*Cursor.objects.filter(halted__isnull=False, pk__in=there)[:_MOST]]
    for cursor in halted:
        yield fail(
            f"network {cursor.network_id} is halted: {cursor.halted}",
            "Compare its providers. If none of them is wrong, decide with script/manage"
            f" chain_resume {cursor.network_id}.",
        )
    if not halted:
        yield ok("none is halted")
    if maintenance.is_chain_paused():
        yield warn(
            "recording what happens on chain is paused, so no network is polled.",
            "End maintenance mode: script/manage maintenance off.",
        )
        return
    yield from _contradictions(there)
    yield from _unavailable(there)
    skipped = {cursor.network_id for cursor in halted}
    lag_by_network = lags()
    for network in Blockchain.objects.filter(active=True, network_id__isnull=False)[:_MOST]:
        if network.network_id not in skipped:
            yield _lag(network, lag_by_network.get(network.network_id or 0, UNKNOWN))


def _contradictions(networks: Any) -> Iterator[Finding]:
    """Providers that were caught, and audits that found something they can't settle."""
    lately = timezone.now() - timedelta(days=1)
    for cursor in Cursor.objects.filter(pk__in=networks, contradicted_at__gte=lately)[:_MOST]:
        yield warn(
            f"network {cursor.network_id}: a provider contradicted itself in the last day:"
            f" {cursor.contradiction}",
            "What it gave is compared with the chain again. If it happens often, remove the"
            " provider, or set verify to all: script/manage chain_network set"
            f" {cursor.network_id} --verify all.",
        )
    for cursor in Cursor.objects.filter(pk__in=networks, audit__unclear__gt=0)[:_MOST]:
        yield warn(
            f"network {cursor.network_id}: the last audit couldn't settle"
            f" {(cursor.audit or {}).get('unclear')} blocks.",
            "Add another provider, then run"
            f" script/manage chain_verify {cursor.network_id} --repair for"
            " these blocks.",
        )


def _unavailable(networks: Any) -> Iterator[Finding]:
    """Blocks of the past that no provider has."""
    rows = Backfill.objects.filter(network_id__in=networks, unavailable=True, done_at=None)
    per_network = rows.order_by("network_id").values("network_id")
    for row in per_network.annotate(
        contracts=Count("address", distinct=True), first=Min("next_block"), last=Max("last_block")
    )[:_MOST]:
        yield warn(
            f"network {row['network_id']}: no provider has all blocks from {row['first']} to"
            f" {row['last']}; events of {counted(row['contracts'], 'contract')} are missing.",
            "Add a provider that has the whole history, or set startBlock of the contracts:"
            f" script/manage chain_status {row['network_id']} names them.",
        )


def _lag(network: Blockchain, lag: Lag) -> Finding:
    if lag.blocks is not None:
        return ok(f"{network}: {lag.blocks} blocks behind, last poll {lag.seconds:.0f} s ago")
    advice = "script/manage chain_status shows its providers; a chain worker has to run."
    if lag.seconds is None:
        return warn(f"{network}: lag unknown, no successful poll yet.", advice)
    advice = advice_for(network.network_id or 0) or advice
    since = f"{lag.seconds:.0f} s"
    return fail(f"{network}: lag unknown, no successful poll for {since}.", advice)


def _of_network(
    network: Blockchain, endpoints: list[Given], answers: list[Look]
) -> Iterator[Finding]:
    if not endpoints:
        yield warn(
            f"{network}: no endpoint, so it isn't followed.",
            f"script/manage chain_provider add {network.network_id} NAME, or give the network an"
            " rpcEndpoint.",
        )
        return
    right = [look for look in answers if look.chain_id == network.network_id]
    best = max((look.head for look in right if look.head is not None), default=0)
    troubles = [_trouble(network, look, best) for look in answers]
    for text in filter(None, troubles):
        finding = warn if right else fail
        yield finding(
            f"{network}: {text}", "Look at the address, its key and the provider's state."
        )
    if right and all(look.source == "public" for look in endpoints):
        yield warn(
            f"{network}: only its public endpoint is asked, which others use up as well.",
            f"script/manage chain_provider add {network.network_id} NAME",
        )
    for look in endpoints:
        if look.url and urlsplit(look.url).scheme == "http" and _has_key(look.url):
            yield warn(
                f"{network}: {look.name} is asked without TLS, so its key can be read on the way.",
                "Use its https address.",
            )
    if not any(troubles):
        yield ok(f"{network}: {len(right)} of {len(endpoints)} endpoints answer, head {best}")


def _trouble(network: Blockchain, look: Look, best: int) -> str | None:
    if look.trouble is not None:
        return f"{look.name} doesn't answer ({look.trouble})."
    if look.chain_id != network.network_id:
        return f"{look.name} answers for network {look.chain_id}: it is never asked."
    if look.head is not None and best - look.head > service_settings.RPC_MAX_LAG:
        return f"{look.name} is {best - look.head} blocks behind the others."
    return None


def _has_key(url: str) -> bool:
    """Whether an address seems to have a key in it: a name and password, or a long part that isn't
    made of words."""
    try:
        if urlsplit(url).username is not None:
            return True
        return any(
            len(part) >= _LIKE_A_KEY and part.isascii() and any(map(str.isdigit, part))
            for part in secrets_of(url)
        )
    except ValueError:
        return False
