"""``manage.py chain_network``: add, change, pause and remove networks."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from typing import Any, Final, NamedTuple

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from chain.models import Cursor
from chain.networks import configuration, providers
from chain.networks.configuration import Change, HasData
from chain.rpc.endpoints import given_for


class _Field(NamedTuple):
    """A field of the class ``Blockchain`` as an option. The class checks its values."""

    name: str
    type: type
    metavar: str
    help: str
    is_address: bool = False

    @property
    def option(self) -> str:
        return "--" + re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", self.name)


FIELDS: Final = (
    _Field("name", str, "NAME", "the network's name"),
    _Field("symbol", str, "SYMBOL", "the symbol of its currency, such as ETH"),
    _Field("code", str, "CODE", "a short name for clients, such as eth"),
    _Field("explorer", str, "URL", "the address of a block explorer, for clients"),
    _Field(
        "rpcEndpoint",
        str,
        "URL",
        "the public RPC address (http, https), which every client can read: without a key. The"
        " service polls it while the network has no provider (chain_provider)",
        is_address=True,
    ),
    _Field(
        "wssEndpoint",
        str,
        "URL",
        "the public WebSocket address (ws, wss), which every client can read: without a key",
        is_address=True,
    ),
    _Field("confirmations", int, "BLOCKS", "blocks on top of a block before its events are stored"),
    _Field("pollInterval", int, "MILLISECONDS", "time between two polls of the head"),
    _Field(
        "finalityDepth",
        int,
        "BLOCKS",
        "blocks on top of a block that make it final, in place of the node's finalized tag",
    ),
    _Field(
        "verify",
        str,
        "MODE",
        "how much of what providers say is checked: sample, or all for every block with events",
    ),
)
_BY_NAME: Final = {field.name: field for field in FIELDS}


def _name_of(text: str) -> str:
    """The field's name, also from the name of its option."""
    by_option = {field.option: field.name for field in FIELDS}
    return by_option.get(f"--{text.removeprefix('--')}", text)


class Command(BaseCommand):
    help = (
        "Adds, changes, pauses, resumes and removes networks. The settings take effect within"
        " seconds, without a restart. Endpoints with keys are providers: chain_provider."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = _subparser(actions, "add", "add a network; it is synced at once unless --paused")
        _add_fields(add)
        add.add_argument("--paused", action="store_true", help="don't sync it until resume")
        change = _subparser(actions, "set", "change fields of a network, and list what changed")
        _add_fields(change)
        change.add_argument(
            "--unset",
            action="append",
            default=[],
            type=_name_of,
            choices=[*_BY_NAME],
            metavar="FIELD",
            help="remove a field, or restore a setting's default; may be given several times."
            f" One of {', '.join(_BY_NAME)}, or the option's name",
        )
        _subparser(actions, "pause", "stop syncing a network where it is; everything stored stays")
        _subparser(
            actions,
            "resume",
            "sync a paused network again from where it was; a halted one needs chain_resume",
        )
        remove = _subparser(
            actions,
            "remove",
            "remove a network with its providers. Refused while there is data of it, unless you"
            " choose what becomes of the data",
        )
        choice = remove.add_mutually_exclusive_group()
        choice.add_argument(
            "--keep-data",
            action="store_true",
            help="keep all data and the providers: syncing goes on where it was when you add the"
            " network again. The same as DELETE of the object over REST",
        )
        choice.add_argument(
            "--delete-data",
            action="store_true",
            help="delete the providers and what was indexed: events, headers, position, backfills,"
            " reorganisations, messages to subscribers, who aren't notified. Contracts,"
            " transactions, wallets and what the service has signed stay",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options["network"], options)
        except HasData as refusal:
            raise CommandError(
                f"{refusal.message} --keep-data removes the network alone; --delete-data also"
                " deletes events, position, backfills and providers, and keeps contracts,"
                " transactions and wallets. To stop syncing without removing anything:"
                f" chain_network pause {options['network']}."
            ) from None
        except ServiceError as error:
            raise CommandError(error.message) from None

    def _add(self, network_id: int, options: dict[str, Any]) -> None:
        fields = self._fields(network_id, options)
        if options["paused"]:
            fields["active"] = False
        configuration.add(network_id, fields)
        self.stdout.write(f"Network {network_id} is added{', paused' * options['paused']}.")
        stored = configuration.stored(network_id)
        if stored:
            self.stdout.write(f"It goes on with the data of it that is there: {stored}.")
        if not given_for(network_id):
            self.stdout.write(
                "It has no endpoint yet, so it isn't synced: chain_provider add"
                f" {network_id} NAME, or chain_network set {network_id} --rpc-endpoint URL."
            )

    def _set(self, network_id: int, options: dict[str, Any]) -> None:
        fields = self._fields(network_id, options)
        for name in options["unset"]:
            if name in fields:
                raise CommandError(f"{_BY_NAME[name].option} and --unset {name} contradict.")
            fields[name] = {"__op": "Delete"}
        if not fields:
            raise CommandError("Nothing to set: name at least one field, see --help.")
        changes = configuration.change(network_id, fields)
        for name, change in changes.items():
            self.stdout.write(f"Network {network_id}: {_described(_BY_NAME[name], change)}")
        if not changes:
            self.stdout.write(f"Network {network_id}: nothing changed.")

    def _pause(self, network_id: int, options: dict[str, Any]) -> None:
        changes = configuration.change(network_id, {"active": False})
        state = "is paused" if changes else "was paused already"
        self.stdout.write(f"Network {network_id} {state}.")

    def _resume(self, network_id: int, options: dict[str, Any]) -> None:
        changes = configuration.change(network_id, {"active": True})
        state = "is synced again" if changes else "wasn't paused"
        self.stdout.write(f"Network {network_id} {state}.")
        halted = Cursor.objects.filter(pk=network_id).values_list("halted", flat=True).first()
        if halted is not None:
            self.stdout.write(f"It is halted: {halted} chain_resume {network_id} ends that.")

    def _remove(self, network_id: int, options: dict[str, Any]) -> None:
        keep, delete = options["keep_data"], options["delete_data"]
        data = configuration.remove(network_id, keep_data=keep, delete_data=delete)
        self.stdout.write(f"Network {network_id} is removed.")
        if data and keep:
            self.stdout.write(f"Kept: {data}, and its providers.")
        if data and delete:
            self.stdout.write(
                f"Deleted: {data.events:,} events, position, backfills, providers. Kept:"
                f" {data.contracts:,} contracts, {data.transactions:,} transactions, wallets."
            )

    def _fields(self, network_id: int, options: dict[str, Any]) -> dict[str, Any]:
        """The fields that were given. A public endpoint has to answer for the network."""
        values = {field.name: options[field.name] for field in FIELDS}
        fields = {name: value for name, value in values.items() if value is not None}
        url = fields.get("rpcEndpoint")
        if url and not options["unchecked"]:
            self._check(network_id, url)
        return fields

    def _check(self, network_id: int, url: str) -> None:
        try:
            complaint = providers.complaint_about(network_id, url)
        except providers.WrongField as wrong:
            raise CommandError(f"--rpc-endpoint: {wrong.reason}") from None
        if complaint:
            raise CommandError(f"--rpc-endpoint: {complaint} --unchecked sets it anyway.")


def _subparser(actions: Any, name: str, text: str) -> ArgumentParser:
    sentence = f"{text[0].upper()}{text[1:]}."
    parser: ArgumentParser = actions.add_parser(name, help=text, description=sentence)
    parser.add_argument("network", type=int, metavar="NETWORK", help="the network's chain id")
    return parser


def _add_fields(parser: ArgumentParser) -> None:
    for field in FIELDS:
        parser.add_argument(
            field.option, dest=field.name, type=field.type, metavar=field.metavar, help=field.help
        )
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="don't ask the RPC address for its chain id",
    )


def _described(field: _Field, change: Change) -> str:
    if field.is_address:
        # Meant to be public, but operators put keys into them by mistake.
        return f"{field.name} was {'removed' if change.after is None else 'changed'}"
    return f"{field.name} {_shown(change.before)} -> {_shown(change.after)}"


def _shown(value: Any) -> str:
    return "none" if value is None or value == "" else str(value)
