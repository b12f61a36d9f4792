"""The triggers that capture changes, and the functions that they call (``capture.sql``).

Generic classes have their trigger from the table that they are partitions of. Each table of a
model gets three, one for each kind of statement: PostgreSQL hands them all rows of the statement at
once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.db import transaction

from backend.logs.setup import get_logger
from objects.core.names import ClassName
from objects.database import catalog
from objects.database.functions import DatabaseFunctions
from objects.database.statements import fetch
from objects.definitions import class_locks, registry
from objects.definitions.models import GENERIC_TABLE
from objects.sql.fragments import literal

FUNCTIONS: Final = DatabaseFunctions(Path(__file__).with_name("capture.sql"))
"""What PostgreSQL runs to capture changes."""

CHANGES: Final = "objects_change"
_OF_ROW: Final = "objects_change_of_row"
_OF_STATEMENT: Final = "objects_change_of_statement"
_ROWS: Final = {
    "insert": "NEW TABLE AS new_rows",
    "update": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "OLD TABLE AS old_rows",
}


class _MissingTrigger(NamedTuple):
    class_name: ClassName
    relation: str
    event: str
    arguments: str


log = get_logger("changes")


def install(**_: Any) -> None:
    """Bring the functions up to date, and create the triggers that tables lack.

    After migrations, and whenever the service is prepared: a deployment may offer a model that has
    its table already. Tables that aren't there yet are left out. Other processes may be serving
    requests: a table that one of their transactions writes to is waited for without stopping them.
    """
    if not catalog.has_table(CHANGES):
        return
    with transaction.atomic():
        if FUNCTIONS.install():
            log.info("functions of the database are installed", functions=list(FUNCTIONS.names))
    if GENERIC_TABLE in catalog.partitions_without_trigger(GENERIC_TABLE, _OF_ROW):
        # Every partition gets it, and every one that is attached later.
        _create_trigger(
            f"CREATE OR REPLACE TRIGGER objects_change AFTER INSERT OR UPDATE OR DELETE"
            f" ON {GENERIC_TABLE} FOR EACH ROW EXECUTE FUNCTION {_OF_ROW}()"
        )
    for missing in _missing_of_models():
        _create_trigger(
            f"CREATE OR REPLACE TRIGGER objects_change_{missing.event}"
            f" AFTER {missing.event} ON {missing.relation}"
            f" REFERENCING {_ROWS[missing.event]} FOR EACH STATEMENT"
            f" EXECUTE FUNCTION {_OF_STATEMENT}({missing.arguments})"
        )
        log.debug("changes are captured", class_name=missing.class_name, statement=missing.event)


def _create_trigger(statement: str) -> None:
    class_locks.in_moments(partial(fetch, statement, {}, prepare=False))


def not_captured() -> list[str]:
    """Return the tables without a capturing trigger, which live queries don't see."""
    generic = catalog.partitions_without_trigger(GENERIC_TABLE, _OF_ROW)
    return generic + sorted({missing.relation for missing in _missing_of_models()})


def _missing_of_models() -> list[_MissingTrigger]:
    classes = registry.model_storage()
    definitions: dict[str, dict[str | None, str]] = {}
    for trigger in catalog.triggers({relation for relation, _ in classes.values()}):
        of_table = definitions.setdefault(trigger.relation, {})
        of_table[trigger.name] = trigger.definition or ""
    return [
        _MissingTrigger(class_name, relation, event, arguments)
        for class_name, (relation, shown_if) in classes.items()
        if relation in definitions
        for arguments in (_arguments(class_name, shown_if),)
        for event in _ROWS
        if f"{_OF_STATEMENT}({arguments})"
        not in definitions[relation].get(f"objects_change_{event}", "")
    ]


def _arguments(class_name: ClassName, shown_if: str | None) -> str:
    names = [class_name] if shown_if is None else [class_name, shown_if]
    return ", ".join(map(literal, names))
