"""What is stored, as one value: equal before and after means that nothing was written."""

from __future__ import annotations

from django.db import transaction

from objects.database.statements import fetch

# Signing in and out goes on; the only other write is the switch itself.
_NOT_LOOKED_AT = ("objects_session", "objects_maintenance")


def everything_stored() -> dict[str, str]:
    """A digest of each table of the service's objects."""
    tables = fetch(
        "SELECT c.oid::regclass::text FROM pg_class c"
        " WHERE c.relkind IN ('r', 'p') AND c.relname LIKE 'objects\\_%%'"
        " AND NOT c.relispartition AND NOT c.relname = ANY(%s) ORDER BY 1",
        (list(_NOT_LOOKED_AT),),
        prepare=False,
    )
    digest = "md5(string_agg(md5(t::text), '' ORDER BY md5(t::text)))"
    with transaction.atomic():
        # The writers go on trying, so this may wait long for a processor.
        fetch("SET LOCAL statement_timeout = 0", (), prepare=False)
        return {
            table: fetch(f"SELECT COALESCE({digest}, '') FROM {table} t", (), prepare=False)[0][0]
            for (table,) in tables
        }
