"""``manage.py chain_provider``: the service's own endpoints of the networks."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.errors import ServiceError
from chain import gateway, providers
from chain.gateway import ProviderHealth
from chain.models import Blockchain, Provider
from objects.core.values import wire_time


class Command(BaseCommand):
    help = (
        "Lists, adds and removes the service's own endpoints of networks. Their addresses may have"
        " keys in them: they are kept encrypted and never shown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="keep an endpoint")
        add.add_argument("network", type=int, help="the network's id")
        add.add_argument("name", help="what it is called, in the admin and in logs")
        add.add_argument(
            "--url",
            default="-",
            help="its address (http, https); - or nothing reads a line of standard input, so that"
            " no list of processes shows the key",
        )
        add.add_argument("--socket-url", help="its WebSocket address (ws, wss), for new heads")
        add.add_argument("--weight", type=int, default=10, help="10 unless given; 0 is a reserve")
        add.add_argument("--requests-per-second", type=int, help="calls that it allows a second")
        add.add_argument("--batch-size", type=int, help="calls that it allows in one request")
        add.add_argument("--largest-range", type=int, help="blocks that it allows for logs")
        add.add_argument("--unchecked", action="store_true", help="don't ask it which network")
        remove = actions.add_parser("remove", help="forget an endpoint")
        remove.add_argument("network", type=int)
        remove.add_argument("name")
        listed = actions.add_parser("list", help="all endpoints and how they are")
        listed.add_argument("network", type=int, nargs="?")
        listed.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except ServiceError as error:
            raise CommandError(error.message) from None

    def _add(self, options: dict[str, Any]) -> None:
        network_id, name = options["network"], options["name"]
        url = options["url"] if options["url"] != "-" else sys.stdin.readline().strip()
        if not options["unchecked"]:
            self._check(network_id, url)
        providers.add(
            network_id,
            name,
            url,
            socket_url=options["socket_url"],
            weight=options["weight"],
            requests_per_second=options["requests_per_second"],
            batch_size=options["batch_size"],
            largest_range=options["largest_range"],
        )
        self.stdout.write(f"Network {network_id} has the provider {name}.")

    def _check(self, network_id: int, url: str) -> None:
        found = providers.tried(url)
        if found.trouble is not None:
            raise CommandError(f"It doesn't answer ({found.trouble}). --unchecked keeps it anyway.")
        if found.chain_id != network_id:
            raise CommandError(f"It answers for network {found.chain_id}, not for {network_id}.")

    def _remove(self, options: dict[str, Any]) -> None:
        providers.remove(options["network"], options["name"])
        self.stdout.write(f"Network {options['network']} has no provider {options['name']} more.")

    def _list(self, options: dict[str, Any]) -> None:
        wanted = options["network"]
        known = {*Blockchain.objects.values_list("network_id", flat=True)}
        known |= {*Provider.objects.values_list("network_id", flat=True)}
        networks = [wanted] if wanted else sorted(one for one in known if one is not None)
        found = {one: gateway.health(one) for one in networks}
        if options["json"]:
            rows = {key: [_described(one) for one in value] for key, value in found.items()}
            self.stdout.write(json.dumps(rows))
            return
        for network_id, members in found.items():
            self.stdout.write(f"{network_id}")
            for one in members:
                self.stdout.write(f"  {_text(one)}")
            if not members:
                self.stdout.write("  no endpoint")


def _described(one: ProviderHealth) -> dict[str, Any]:
    return {
        "name": one.name,
        "source": one.source,
        "weight": one.weight,
        "head": one.head,
        "lag": one.lag,
        "latency": one.latency,
        "failures": one.failures,
        "pausedUntil": one.paused_until and wire_time(one.paused_until),
        "trouble": one.trouble,
        "checkedAt": one.checked_at and wire_time(one.checked_at),
    }


def _text(one: ProviderHealth) -> str:
    shown = [one.name, f"({one.source}, weight {one.weight})"]
    if one.head is not None:
        shown.append(f"head {one.head}" + (f", {one.lag} behind" if one.lag else ""))
    if one.latency is not None:
        shown.append(f"{one.latency:.0f} ms")
    if one.paused_until is not None:
        shown.append(f"left alone until {wire_time(one.paused_until)}")
    if one.trouble:
        shown.append(f"last trouble: {one.trouble}")
    return "  ".join(shown)
