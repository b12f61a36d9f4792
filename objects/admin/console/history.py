"""What a staff user has run in the console: the latest requests, each once, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from backend.kernel.texts.encoding import shortened
from backend.kernel.texts.redaction import mask_text
from objects.admin.console.forms import Kind
from objects.staff.models import ConsoleEntry

_MOST: Final = 50
_LONGEST: Final = 20_000  # characters of an entry
_SHORT: Final = 120


@dataclass(frozen=True, slots=True)
class Entry:
    """A request as the list shows it."""

    id: int
    kind: str
    text: str
    status: int
    ms: float
    at: datetime


def note(user: Any, kind: Kind, fields: Mapping[str, Any], status: int, ms: float) -> None:
    """Store a request in front of the others. What is too long isn't stored."""
    texts = {
        name: mask_text(value) if isinstance(value, str) else value
        for name, value in fields.items()
        if value not in ("", None, False) and name != "explain"
    }
    if sum(len(str(value)) for value in texts.values()) > _LONGEST:
        return
    entries = ConsoleEntry.objects.filter(user=user)
    with transaction.atomic():
        entries.filter(kind=kind, fields=texts).delete()
        ConsoleEntry.objects.create(user=user, kind=kind, fields=texts, status=status, ms=ms)
        superfluous = entries.order_by("-id").values_list("id", flat=True)[_MOST:]
        entries.filter(id__in=[*superfluous]).delete()


def entries_of(user: Any) -> list[Entry]:
    """Return what the staff user has run, the latest first."""
    return [
        Entry(row.pk, row.kind, _text(row), row.status, row.ms, row.created_at)
        for row in ConsoleEntry.objects.filter(user=user).order_by("-id")[:_MOST]
    ]


def fields_of(user: Any, entry_id: int) -> tuple[str, dict[str, Any]] | None:
    """Return the kind of an entry of the staff user's own, and its form; None for any other."""
    row = ConsoleEntry.objects.filter(user=user, pk=entry_id).first()
    return None if row is None else (row.kind, dict(row.fields))


def _text(row: ConsoleEntry) -> str:
    fields = row.fields
    if row.kind == "sql":
        words = [fields.get("statement")]
    elif row.kind == "request":
        words = [fields.get("method"), fields.get("path"), fields.get("body")]
    else:
        words = [fields.get("class_name"), fields.get("where") or fields.get("pipeline")]
    text = " ".join(" ".join(str(word).split()) for word in words if word)
    return shortened(text, _SHORT)
