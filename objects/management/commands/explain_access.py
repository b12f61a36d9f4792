"""``manage.py explain_access CLASS ACTION``: why a caller may, or may not, do something.

    manage.py explain_access Note get --object 9MHBHENufv --user 8unWXgEmMo
    manage.py explain_access Note create
    manage.py explain_access Note update --object 9MHBHENufv --read-only

Without ``--user``, ``--master`` or ``--read-only`` the caller is a client that isn't logged in.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER, Principal
from objects.core.access.class_permissions import ACTIONS
from objects.explanations.access import Explanation, explain
from objects.explanations.texts import describe
from objects.users.accounts.impersonation import as_user

_SIGNS = {"yes": "+", "no": "-", "depends": "?"}
_ANSWERS = {
    "yes": "Yes, the caller may.",
    "no": "No, the caller may not.",
    "depends": "The caller may do this with objects that meet the conditions marked with ?.",
}


class Command(BaseCommand):
    help = "Explain why a caller may, or may not, do something with a class or an object."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("class_name", metavar="CLASS")
        parser.add_argument("action", metavar="ACTION", choices=ACTIONS, help=", ".join(ACTIONS))
        parser.add_argument("--object", metavar="ID", help="an object of the class")
        who = parser.add_mutually_exclusive_group()
        who.add_argument("--user", metavar="ID", help="a user who is logged in")
        who.add_argument("--master", action="store_true", help="the master key")
        who.add_argument("--read-only", action="store_true", help="the read-only master key")

    def handle(self, *args: Any, **options: Any) -> None:
        principal = _principal(options)
        explanation = explain(
            principal, options["class_name"], options["action"], options["object"]
        )
        self.stdout.write(f"Caller: {describe(principal)}")
        for line in _lines(explanation):
            self.stdout.write(line)


def _principal(options: dict[str, Any]) -> Principal:
    if options["master"]:
        return MASTER
    if options["read_only"]:
        return READ_ONLY_MASTER
    user_id = options["user"]
    if user_id is None:
        return CLIENT
    try:
        return as_user(user_id)[0]
    except ServiceError:
        raise CommandError(f"There is no user with the id {user_id}.") from None


def _lines(explanation: Explanation) -> list[str]:
    lines = [_ANSWERS[explanation.verdict], f"Decided by: {explanation.decided.rule}"]
    if explanation.error is not None:
        lines.append(f"Error: {explanation.error.code} {explanation.error.message}")
    for step in explanation.steps:
        lines.append(f"  {_SIGNS[step.verdict]} {step.rule}: {step.text}")
        lines.extend(f"      {detail}" for detail in step.details)
    if explanation.triggers:
        lines.append(f"  triggers come besides: {', '.join(explanation.triggers)}")
    lines.extend(
        f"  hidden: {field.name} (by {', '.join(field.groups)})" for field in explanation.hidden
    )
    return lines
