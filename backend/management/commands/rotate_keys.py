"""``manage.py rotate_keys WORD…``: new keys for this instance."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.management.durations import parse_duration
from backend.operations.keys import rotation
from backend.operations.keys.instance import FALLBACKS, FORMER
from backend.operations.keys.rotation import SECRET, WORDS


class Command(BaseCommand):
    help = (
        "Make new keys and keep them for the next start of the service. Keys that come from the "
        "environment are printed, to be changed there."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("keys", nargs="*", choices=[*WORDS, []], metavar="|".join(WORDS))
        parser.add_argument("--show", action="store_true", help="print the new keys")
        parser.add_argument(
            "--grace", metavar="TIME", help="how long the old keys count too: 90m, 24h, 7d"
        )
        parser.add_argument(
            "--finish",
            action="store_true",
            help="when every process has the new SECRET_KEY: encrypt stored secrets under it and "
            "drop the old one",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["finish"] == bool(options["keys"]):
            raise CommandError(f"name the keys to rotate ({', '.join(WORDS)}), or --finish")
        if options["finish"]:
            self._finish()
            return
        grace = None if options["grace"] is None else _time(options["grace"])
        names = [*dict.fromkeys(WORDS[word] for word in options["keys"])]
        try:
            done = rotation.rotate(names, grace)
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        for name in names:
            if name in done.stored:
                shown = f" {done.stored[name]}" if options["show"] else ""
                self.stdout.write(f"{name} is new:{shown}" if shown else f"{name} is new.")
        if done.to_set:
            self.stdout.write(
                "These come from the environment, which this command can't change. Set them there:"
            )
            for name, value in done.to_set.items():
                self.stdout.write(f"{name}={value}")
        self.stderr.write(
            "The service takes the new keys when it is started again, or by script/manage reload; "
            "until then the old ones count."
        )
        if FORMER in done.stored or FORMER in done.to_set:
            self.stderr.write(f"After that the old ones count too, for {options['grace']}.")
        if SECRET in names:
            self.stderr.write(
                "What the old SECRET_KEY encrypted is read by SECRET_KEY_FALLBACKS. When every "
                "process has been started again: script/manage rotate_keys --finish"
            )

    def _finish(self) -> None:
        try:
            done = rotation.finish()
        except rotation.NotRestarted:
            raise CommandError(
                "the running service was started before the keys were changed: restart it first"
            ) from None
        self.stdout.write(f"{done.done} stored secrets are encrypted under the present SECRET_KEY.")
        if done.unreadable:
            self.stdout.write(f"{done.unreadable} can't be read by any key that is known here.")
        if done.dropped:
            self.stdout.write("There is no former SECRET_KEY any more.")
        else:
            self.stdout.write(f"Take {FALLBACKS} out of the environment now.")


def _time(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise CommandError(f"--grace: {error}") from None
