"""What ``manage.py doctor`` looks at in signers and in what they have sent."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.utils import timezone

from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.kernel.errors import ScriptFailed
from backend.settings.conf import service_settings
from backend.settings.environment import LOOPBACK_HOSTS
from chain import rpc
from chain.core.failures import NodeFailure
from chain.models import Blockchain, Sending
from chain.rpc import contracts
from chain.sending import nonces
from chain.sending.signers import CannotSign, signer_for

_LONG: Final = timedelta(hours=1)
_RECENT: Final = timedelta(days=7)
_SECONDS: Final = 3.0  # for one network


@check("signers", needs=(DATABASE, "migrations"), seconds=30)
def signers() -> Iterator[Finding]:
    """Whether each network's signer can sign and pay, and whether others can read its key."""
    for path in {*service_settings.SIGNER_KEYSTORE.values()}:
        yield from _readable(Path(path))
    for url in {setting.value for setting in service_settings.SIGNER_URL.values()}:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
            yield warn(
                "A SIGNER_URL is http: whoever is in between may have anything signed.",
                "Use https, or a network that nobody else is in.",
            )
    for network_id in Blockchain.objects.filter(active=True).values_list("network_id", flat=True):
        if network_id is not None:
            yield from _signer_of(network_id)


def _readable(path: Path) -> Iterator[Finding]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # said with the network
    if mode & 0o077:
        yield warn(f"{path} can be read by other accounts.", f"chmod 600 {path}")


def _signer_of(network_id: int) -> Iterator[Finding]:
    try:
        address = signer_for(network_id).address
    except ScriptFailed:
        return  # it has none, and needs none until something is to be sent
    except CannotSign as problem:
        yield fail(f"network {network_id}: {problem}", "See docs/chain-sending.md, Signers.")
        return
    try:
        balance = rpc.attempt(
            network_id, lambda node: contracts.balance_of(node, address), seconds=_SECONDS
        )
    except NodeFailure:
        yield ok(f"network {network_id}: {address}")
        return
    if balance:
        yield ok(f"network {network_id}: {address}")
    else:
        yield warn(f"network {network_id}: {address} has nothing to pay with.", "Fund it.")


@check("sent transactions", needs=(DATABASE, "migrations"))
def sent_transactions() -> Iterator[Finding]:
    """Whether what was signed gets into the chain."""
    now = timezone.now()
    waiting = Sending.objects.filter(state__in=(nonces.SIGNED, nonces.SENT))
    late = waiting.filter(created_at__lt=now - _LONG).count()
    if late:
        yield warn(
            f"{late} transactions have been waiting for more than an hour.",
            "Look at the networks' fees and at MAX_FEE_GWEI, and at the signers' ether.",
        )
    lost = Sending.objects.filter(state=nonces.LOST, created_at__gt=now - _RECENT)
    for account in lost.values_list("account", flat=True).distinct().order_by("account"):
        yield fail(
            f"{account} was used elsewhere: actions of the service were not done.",
            "Give the service an account of its own.",
        )
    if not late and not lost.exists():
        yield ok(f"{waiting.count()} under way")
