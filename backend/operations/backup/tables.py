"""What is in the instance's schema, and the statements that replace it.

All of it runs on a connection of its own, beside Django's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import psycopg
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model
from psycopg import sql

from objects.database import hold
from objects.database.fresh_rows import ANY_NUMBER, fresh_rows
from objects.definitions.models import CHANGE_TABLES, GENERIC_TABLE, VERSION_SEQUENCE

ROLE_SEQUENCE = "objects_role_version_number"

_EPOCH = "chain_outbox_epoch"
_SCHEDULE_CHANGES = "django_celery_beat_periodictasks"
_BACKUP_RUNS = "backend_backuprun"

_MIGRATIONS = "django_migrations"
_CLASSES = "objects_class"
_KEPT = "backup.version_"  # settings of the transaction, which outlive the sequences

Connection = psycopg.Connection


def schema_of(own: Connection) -> str:
    """The schema that the service's tables are in."""
    row = own.execute("SELECT current_schema()").fetchone()
    return str(row[0]) if row and row[0] else "public"


def table_names(own: Connection, schema: str) -> list[str]:
    """All tables of the schema but those of extensions and those whose rows aren't backed up;
    partitioned ones by their partitions."""
    rows = own.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname <> ALL(%s)"
        " AND NOT EXISTS (SELECT FROM pg_depend d"
        " WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')"
        " ORDER BY 1",
        (schema, [*CHANGE_TABLES]),
    )
    return [row[0] for row in rows]


def counts(own: Connection, schema: str) -> dict[str, int]:
    """The number of rows of each table, counted."""
    counts_by_table = {}
    for name in table_names(own, schema):
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name))
        row = own.execute(query).fetchone()
        assert row
        counts_by_table[name] = int(row[0])
    return counts_by_table


def extensions(own: Connection) -> list[str]:
    """The extensions of the database that aren't there by themselves."""
    rows = own.execute("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql' ORDER BY 1")
    return [row[0] for row in rows]


def applied_migrations(own: Connection, schema: str) -> list[str]:
    """The migrations that the database has, as ``app.name``."""
    if _MIGRATIONS not in table_names(own, schema):
        return []
    table = sql.Identifier(schema, _MIGRATIONS)
    query = sql.SQL("SELECT DISTINCT app || '.' || name FROM {} ORDER BY 1").format(table)
    return [row[0] for row in own.execute(query)]


def known_migrations() -> set[str]:
    """The migrations that this release has, those that others replaced included."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return {f"{app}.{name}" for app, name in loader.disk_migrations}


def strangers(own: Connection, schema: str) -> list[str]:
    """Return the tables that belong to no application of this service."""
    tables = {model._meta.db_table for model in _models()}
    tables |= {_MIGRATIONS, GENERIC_TABLE}
    tables |= set(connection.introspection.django_table_names())
    return [
        name
        for name in table_names(own, schema)
        if name not in tables and not name.removeprefix(f"{GENERIC_TABLE}_").isdecimal()
    ]


def used(own: Connection, schema: str) -> dict[str, int]:
    """Return the number of rows of each table that holds data; empty for a fresh instance.

    Models say how many rows aren't data (``objects.database.fresh_rows``). A class that isn't one
    of a model's is data, also without objects.
    """
    fresh = {model._meta.db_table: fresh_rows(model) for model in _models()}
    fresh[_MIGRATIONS] = ANY_NUMBER
    counts_by_table: dict[str, int] = {}
    for name in table_names(own, schema):
        most = -1 if name.startswith(f"{GENERIC_TABLE}_") else fresh.get(name, 0)
        if most == ANY_NUMBER:
            continue
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name))
        row = own.execute(query).fetchone()
        rows = int(row[0]) if row else 0
        if rows > most:
            counts_by_table[name] = rows
    return counts_by_table


def _models() -> Iterable[type[Model]]:
    models = apps.get_models(include_auto_created=True)
    return [model for model in models if not model._meta.proxy]


def file_names(own: Connection, schema: str) -> list[str]:
    """The names of the files that the database knows of."""
    if "objects_file" not in table_names(own, schema):
        return []
    query = sql.SQL("SELECT name FROM {}").format(sql.Identifier(schema, "objects_file"))
    return [row[0] for row in own.execute(query)]


# -- statements ---------------------------------------------------------------------------------

# Each of them names what it drops before it drops anything: CASCADE takes others along.
_DROP = """
DO $do$
DECLARE
    statements text[];
    statement text;
BEGIN
    SELECT array_agg(format('DROP %s IF EXISTS %I.%I CASCADE', k.word, n.nspname, c.relname)
                     ORDER BY k.place) INTO statements
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN (VALUES ('v', 'VIEW', 1), ('m', 'MATERIALIZED VIEW', 2), ('p', 'TABLE', 3),
                 ('r', 'TABLE', 4), ('S', 'SEQUENCE', 5)) AS k (kind, word, place)
      ON k.kind = c.relkind::text
    WHERE n.nspname = {schema} AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e');
    FOREACH statement IN ARRAY coalesce(statements, '{{}}') LOOP EXECUTE statement; END LOOP;
    SELECT array_agg(format('DROP ROUTINE IF EXISTS %s CASCADE', p.oid::regprocedure))
    INTO statements
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = {schema} AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype IN ('e', 'i'));
    FOREACH statement IN ARRAY coalesce(statements, '{{}}') LOOP EXECUTE statement; END LOOP;
    SELECT array_agg(format('DROP TYPE IF EXISTS %I.%I CASCADE', n.nspname, t.typname))
    INTO statements
    FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE n.nspname = {schema} AND (t.typtype IN ('d', 'e') OR c.relkind = 'c') AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e');
    FOREACH statement IN ARRAY coalesce(statements, '{{}}') LOOP EXECUTE statement; END LOOP;
END $do$"""

_REMEMBER = """
DO $do$
DECLARE
    last bigint;
BEGIN
    IF to_regclass({table}) IS NOT NULL AND to_regclass({sequence}) IS NOT NULL THEN
        EXECUTE 'LOCK TABLE ' || {table} || ' IN ACCESS EXCLUSIVE MODE';
        EXECUTE 'SELECT last_value FROM ' || {sequence} INTO last;
        PERFORM set_config({setting}, last::text, true);
    END IF;
END $do$"""

_RENUMBER = """
SELECT setval({sequence}, greatest(nextval({sequence}),
    coalesce(nullif(current_setting({setting}, true), ''), '0')::bigint))"""

_COUNT = """
DO $do$
DECLARE
    expected record;
    found bigint;
BEGIN
    FOR expected IN SELECT * FROM (VALUES {rows}) AS t (name, rows) LOOP
        EXECUTE 'SELECT count(*) FROM ' || expected.name INTO found;
        IF found <> expected.rows THEN
            RAISE EXCEPTION '% has % rows instead of %', expected.name, found, expected.rows;
        END IF;
    END LOOP;
END $do$"""


def dropping(schema: str) -> list[str]:
    """Statements that empty the schema, and keep in mind which versions it has given."""
    return [
        *(
            _REMEMBER.format(
                table=_literal(_name(schema, table)),
                sequence=_literal(_name(schema, sequence)),
                setting=_literal(_KEPT + sequence),
            )
            for table, sequence in _VERSIONED
        ),
        _DROP.format(schema=_literal(schema)),
    ]


def settling(schema: str, expected: Mapping[str, int], *, is_held: bool) -> list[str]:
    """Statements for what has been restored: each table has its rows, every version is new, and
    the instance is held if it is to be.

    Processes keep definitions and roles by their versions, and one that runs meanwhile must not
    take a restored version for the one that it knows.
    """
    statements = counting(schema, expected)
    for table, sequence in _VERSIONED:
        if table not in expected:
            continue
        name = _literal(_name(schema, sequence))
        statements.append(_RENUMBER.format(sequence=name, setting=_literal(_KEPT + sequence)))
        statements.append(f"UPDATE {_name(schema, table)} SET version = nextval({name})")
    if _EPOCH in expected:
        # Numbers of events are given again: clients must not go on from those that they know.
        statements.append(f"UPDATE {_name(schema, _EPOCH)} SET value = gen_random_uuid()")
    statements += hold.restoring(_name(schema), is_on=is_held)
    if _BACKUP_RUNS in expected:
        # The archive has the run that made it, before its end.
        statements.append(f"DELETE FROM {_name(schema, _BACKUP_RUNS)} WHERE state = 'running'")
    if _SCHEDULE_CHANGES in expected:
        # Beat, if it runs, reads the schedule again.
        statements.append(f"UPDATE {_name(schema, _SCHEDULE_CHANGES)} SET last_update = now()")
    return statements


def counting(schema: str, expected: Mapping[str, int]) -> list[str]:
    """Statements that fail unless each table has its rows."""
    rows = ", ".join(
        f"({_literal(_name(schema, name))}, {int(number)}::bigint)"
        for name, number in expected.items()
    )
    return [_COUNT.format(rows=rows)] if rows else []


def settling_copy(own: Connection, schema: str, *, is_held: bool) -> list[str]:
    """Statements for a copy of the whole database that was recovered, before any process uses it.

    Nothing has the versions that it gives next, so they needn't be new. Runs of jobs end as those
    of a service that was killed, and unlogged tables are empty.
    """
    statements = hold.restoring(_name(schema), is_on=is_held)
    if _EPOCH in table_names(own, schema):
        statements.append(f"UPDATE {_name(schema, _EPOCH)} SET value = gen_random_uuid()")
    return statements


_VERSIONED = ((_CLASSES, VERSION_SEQUENCE), ("objects_role_version", ROLE_SEQUENCE))


def _name(*parts: str) -> str:
    return sql.Identifier(*parts).as_string(None)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
