"""``manage.py backup FOLDER|FILE.tar``: the whole instance as one file, while it works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import filesizeformat

from backend.kernel.texts.counted import counted
from backend.operations.backup import archive, creation
from backend.operations.backup.archive import Manifest
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings


class Command(BaseCommand):
    help = (
        "Back up the whole instance (database, files, keys) while it works. Given a folder, the "
        "archive is named by application and time. It holds secrets: only its owner may read it."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", nargs="?", metavar="FOLDER|FILE.tar", type=Path)
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="leave the keys out; second factors and wallets can't be read then without the "
            "SECRET_KEY, which has to be kept elsewhere",
        )
        parser.add_argument(
            "--verify", metavar="FILE", type=Path, help="only check an archive, all of it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        target, verify = options["target"], options["verify"]
        if (target is None) == (verify is None):
            raise CommandError("name a folder or a file to write, or --verify an archive")
        try:
            if verify is not None:
                manifest = archive.check(verify)
                self.stdout.write(f"{verify} is whole: {described(manifest)}")
                return
            made = creation.make(target, with_keys=not options["without_keys"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename or target}: {error.strerror}") from error
        self.stdout.write(str(made.path))
        self.stderr.write(described(made.manifest))
        if made.manifest.missing_files:
            self.stderr.write(
                f"{made.manifest.missing_files} files are known and not in storage; the log names "
                "them."
            )
        if made.changed_files:
            self.stderr.write(
                f"{made.changed_files} files have other bytes than when they were uploaded; the "
                "log names them."
            )
        if made.has_keys:
            self.stderr.write("The archive holds the keys of this instance: keep it secret.")
        if service_settings.SIGNER_PRIVATE_KEY or service_settings.SIGNER_KEYSTORE:
            self.stderr.write(
                "The keys of signers (SIGNER_PRIVATE_KEY, SIGNER_KEYSTORE) are not in it: keep a "
                "copy of them elsewhere."
            )


def described(manifest: Manifest) -> str:
    """What an archive has, in a line."""
    rows = sum(manifest.tables.values())
    files = counted(manifest.files, "file")
    size = filesizeformat(manifest.file_bytes).replace("\xa0", " ")
    keys = "keys" if archive.KEYS in manifest.parts else "no keys"
    return (
        f"{rows:,} rows in {len(manifest.tables)} tables, {files} ({size}), {keys}; "
        f"of {manifest.created}, service {manifest.service}, PostgreSQL {manifest.postgres}."
    )
