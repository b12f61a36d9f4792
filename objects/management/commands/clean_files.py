"""``manage.py clean_files``: files that no object refers to."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import filesizeformat

from backend.kernel.errors import UnderMaintenance
from backend.kernel.texts.counted import counted
from objects.files.orphans import GRACE, SHORTEST_GRACE, remove_unused, unused_files

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Command(BaseCommand):
    help = (
        "List the stored files that nothing in any class refers to, with their sizes. With --delete"
        " they are removed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--delete", action="store_true", help="remove them")
        parser.add_argument(
            "--older-than",
            default=None,
            metavar="AGE",
            help="only files of this age: 90m, 24h, 7d (default: 24h, least: 1h)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        age = GRACE if options["older_than"] is None else _age(options["older_than"])
        if options["delete"]:
            try:
                done = remove_unused(age)
            except UnderMaintenance as refused:
                raise CommandError(refused.message) from None
            self.stderr.write(f"{counted(done.files, 'file')} removed, {_size(done.bytes)}")
            if done.failed:
                raise CommandError(
                    f"{counted(done.failed, 'file')} couldn't be removed; the log says why"
                )
            return
        files = size = 0
        with unused_files(age) as unused:
            for file in unused:
                self.stdout.write(f"{file.name}\t{file.size}")
                files, size = files + 1, size + file.size
        self.stderr.write(
            f"{counted(files, 'file')} that nothing refers to, {_size(size)}."
            + (" --delete removes them." if files else "")
        )


def _size(number: int) -> str:
    return filesizeformat(number).replace("\xa0", " ")


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    if match is None:
        raise CommandError(f"--older-than: expected an age like 90m, 24h or 7d, not {text!r}")
    age = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if age < SHORTEST_GRACE:
        raise CommandError("--older-than: files younger than 1h may be about to be referred to")
    return age
