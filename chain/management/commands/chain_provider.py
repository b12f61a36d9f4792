"""``manage.py chain_provider``: the service's own endpoints of the networks."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from chain import rpc
from chain.models import Blockchain, Provider
from chain.networks import providers
from chain.rpc import ProviderHealth
from objects.core.values import wire_time

_LIMITS: Final = {
    "--requests-per-second": "calls that it allows a second",
    "--batch-size": "calls that it allows in one request",
    "--largest-range": "blocks that it allows for logs",
}
_OPTIONAL: Final = ["socket-url", *(option.removeprefix("--") for option in _LIMITS)]


class Command(BaseCommand):
    help = (
        "List, add, change and remove the service's own endpoints of networks. Their addresses"
        " may have keys in them: they are kept encrypted and never shown."
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
        for option, text in _LIMITS.items():
            add.add_argument(option, type=int, help=text)
        add.add_argument("--unchecked", action="store_true", help="don't ask it which network")
        change = actions.add_parser("set", help="change an endpoint; prints which fields changed")
        change.add_argument("network", type=int, help="the network's id")
        change.add_argument("name", help="the endpoint's name")
        change.add_argument("--name", dest="new_name", help="a new name")
        change.add_argument(
            "--url",
            help="a new address; - reads a line of standard input, so that no list of processes"
            " shows the key",
        )
        change.add_argument("--socket-url", help="a new WebSocket address (ws, wss)")
        change.add_argument("--weight", type=int, help="0 is a reserve")
        for option, text in _LIMITS.items():
            change.add_argument(option, type=int, help=text)
        state = change.add_mutually_exclusive_group()
        state.add_argument(
            "--active", action="store_true", default=None, help="send requests to it again"
        )
        state.add_argument(
            "--inactive",
            dest="active",
            action="store_false",
            default=None,
            help="send no requests to it",
        )
        change.add_argument(
            "--unset",
            action="append",
            default=[],
            type=_option_of,
            choices=_OPTIONAL,
            metavar="FIELD",
            help="remove the WebSocket address or a limit; may be given several times."
            f" One of {', '.join(_OPTIONAL)}",
        )
        change.add_argument("--unchecked", action="store_true", help="don't ask it which network")
        remove = actions.add_parser("remove", help="forget an endpoint")
        remove.add_argument("network", type=int)
        remove.add_argument("name")
        listed = actions.add_parser("list", help="all endpoints and how they are")
        listed.add_argument("network", type=int, nargs="?")
        listed.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except providers.WrongField as wrong:
            raise CommandError(f"--{wrong.field.replace('_', '-')}: {wrong.reason}") from None
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

    def _set(self, options: dict[str, Any]) -> None:
        network_id, name = options["network"], options["name"]
        values = {key: options["new_name" if key == "name" else key] for key in providers.FIELDS}
        fields = {key: value for key, value in values.items() if value is not None}
        for option in options["unset"]:
            if fields.get(_key(option)) is not None:
                raise CommandError(f"--{option} and --unset {option} contradict.")
            fields[_key(option)] = None
        if not fields:
            raise CommandError("Nothing to set: give at least one option, see --help.")
        if fields.get("url") == "-":
            fields["url"] = sys.stdin.readline().strip()
        if "url" in fields and not options["unchecked"]:
            self._check(network_id, fields["url"])
        changed = providers.change(network_id, name, fields)
        text = f"changed {', '.join(changed)}" if changed else "nothing changed"
        self.stdout.write(f"Provider {name} of network {network_id}: {text}.")

    def _check(self, network_id: int, url: str) -> None:
        if complaint := providers.complaint_about(network_id, url):
            raise CommandError(f"{complaint} --unchecked keeps it anyway.")

    def _remove(self, options: dict[str, Any]) -> None:
        providers.remove(options["network"], options["name"])
        self.stdout.write(f"Network {options['network']}: provider {options['name']} is removed.")

    def _list(self, options: dict[str, Any]) -> None:
        chosen = options["network"]
        network_ids = {*Blockchain.objects.values_list("network_id", flat=True)}
        network_ids |= {*Provider.objects.values_list("network_id", flat=True)}
        networks = [chosen] if chosen else sorted(each for each in network_ids if each is not None)
        health_by_network = {each: rpc.health(each) for each in networks}
        if options["json"]:
            rows = {
                key: [_described(each) for each in value]
                for key, value in health_by_network.items()
            }
            self.stdout.write(json.dumps(rows))
            return
        for network_id, members in health_by_network.items():
            self.stdout.write(f"{network_id}")
            for each in members:
                self.stdout.write(f"  {_text(each)}")
            if not members:
                self.stdout.write("  no endpoint")


def _option_of(text: str) -> str:
    """The name of an option, also from the name of the field over REST: ``batchSize``."""
    dashed = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", text.removeprefix("--"))
    return dashed.replace("_", "-")


def _key(option: str) -> str:
    return option.replace("-", "_")


def _described(provider: ProviderHealth) -> dict[str, Any]:
    return {
        "name": provider.name,
        "source": provider.source,
        "weight": provider.weight,
        "head": provider.head,
        "lag": provider.lag,
        "latency": provider.latency,
        "failures": provider.failures,
        "pausedUntil": provider.paused_until and wire_time(provider.paused_until),
        "trouble": provider.trouble,
        "checkedAt": provider.checked_at and wire_time(provider.checked_at),
    }


def _text(provider: ProviderHealth) -> str:
    shown = [provider.name, f"({provider.source}, weight {provider.weight})"]
    if provider.head is not None:
        shown.append(f"head {provider.head}" + (f", {provider.lag} behind" if provider.lag else ""))
    if provider.latency is not None:
        shown.append(f"{provider.latency:.0f} ms")
    if provider.paused_until is not None:
        shown.append(f"left alone until {wire_time(provider.paused_until)}")
    if provider.trouble:
        shown.append(f"last trouble: {provider.trouble}")
    return "  ".join(shown)
