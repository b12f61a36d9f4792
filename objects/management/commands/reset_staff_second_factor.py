"""``manage.py reset_staff_second_factor NAME``: a staff user who has lost the second factor."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from objects.staff import second_factor


class Command(BaseCommand):
    help = (
        "Take the second factor of a staff user away: authenticator app, passkeys and recovery "
        "codes. The next login takes the password alone, and leads to the set-up if a second "
        "factor is required."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", metavar="NAME", help="the staff user's name")

    def handle(self, *args: Any, **options: Any) -> None:
        name: str = options["username"]
        users = get_user_model().objects
        user = users.filter(username=name, is_staff=True).first()
        if user is None:
            raise CommandError(
                f"There is no staff user {name!r}. The admin lists them under Staff."
            )
        had_any = second_factor.reset(user)
        self.stdout.write(
            f"{name}: the second factor is reset." if had_any else f"{name} has no second factor."
        )
