"""The triggers that capture changes, and whether a class is captured at the moment.

Generic classes have theirs from the table that they are partitions of. Each table of a model gets
three, one for each kind of statement: PostgreSQL hands them all rows of the statement at once.
``capture.sql`` has the functions that they call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.db import transaction

from backend.logs.setup import get_logger
from objects.core.names import ClassName
from objects.database.statements import fetch
from objects.definitions import registry
from objects.sql.fragments import literal

_ROWS: Final = {
    "insert": "NEW TABLE AS new_rows",
    "update": "OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "OLD TABLE AS old_rows",
}
_MISSING = """
SELECT g.class_name, g.relation, e.event, g.arguments
FROM unnest(%s::text[], %s::text[], %s::text[]) AS g(class_name, relation, arguments)
CROSS JOIN unnest(%s::text[]) AS e(event)
WHERE to_regclass(g.relation) IS NOT NULL AND to_regproc('objects_change_of_statement') IS NOT NULL
AND NOT EXISTS (
    SELECT FROM pg_trigger t
    WHERE t.tgrelid = to_regclass(g.relation) AND t.tgname = 'objects_change_' || e.event
    AND strpos(pg_get_triggerdef(t.oid), '_of_statement(' || g.arguments || ')') > 0)
"""

_NOT_CAPTURED = """
SELECT r.relation::text
FROM (SELECT 'objects_object'::regclass AS relation
      UNION ALL
      SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'objects_object'::regclass) r
WHERE NOT EXISTS (
    SELECT FROM pg_trigger t
    WHERE t.tgrelid = r.relation AND t.tgfoid = 'objects_change_of_row'::regproc
    AND t.tgenabled IN ('O', 'A'))
ORDER BY 1
"""

log = get_logger("changes")


def sql() -> str:
    """Return the functions that capture changes, and the trigger of generic classes."""
    return Path(__file__).with_name("capture.sql").read_text()


def install(**_: Any) -> None:
    """Give the tables of model-backed classes the triggers that they lack.

    After migrations, and whenever the service is prepared: a deployment may offer a model that has
    its table already. Tables that aren't there yet are left out.
    """
    with transaction.atomic():
        for class_name, relation, event, arguments in _missing_of_models():
            fetch(
                f"CREATE OR REPLACE TRIGGER objects_change_{event} AFTER {event} ON {relation}"
                f" REFERENCING {_ROWS[event]} FOR EACH STATEMENT"
                f" EXECUTE FUNCTION objects_change_of_statement({arguments})",
                (),
                prepare=False,
            )
            log.debug("changes are captured", class_name=class_name, statement=event)


def not_captured() -> list[str]:
    """Return the tables without a capturing trigger, which live queries don't see."""
    generic = [relation for (relation,) in fetch(_NOT_CAPTURED, (), prepare=False)]
    return generic + sorted({relation for _, relation, _, _ in _missing_of_models()})


def _missing_of_models() -> list[Any]:
    classes = registry.model_storage()
    arguments = [_arguments(name, shown_if) for name, (_, shown_if) in classes.items()]
    relations = [relation for relation, _ in classes.values()]
    return [*fetch(_MISSING, ([*classes], relations, arguments, [*_ROWS]), prepare=False)]


def _arguments(class_name: ClassName, shown_if: str | None) -> str:
    names = [class_name] if shown_if is None else [class_name, shown_if]
    return ", ".join(map(literal, names))


def is_wanted(class_name: ClassName) -> bool:
    """Return whether changes of the class are captured at the moment."""
    return bool(
        fetch(
            "SELECT FROM objects_interest WHERE class_name = %s AND until > statement_timestamp()",
            (class_name,),
            prepare=True,
        )
    )
