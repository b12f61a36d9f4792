"""PostgreSQL and Redis: reachable, new enough, and set up so that nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any

import redis
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.utils import OperationalError

from backend.kernel.connections.redis import asking_once
from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.kernel.texts.redaction import mask_text
from backend.operations.backup import postgres
from backend.operations.backup.problems import BackupError
from backend.tasks import lanes

OLDEST = 16
_MEGABYTE = 2**20
_LONG_TRANSACTION = 600  # seconds
_WRAPAROUND = 1_500_000_000


def _row(sql: str, *params: Any) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchone() or ()


@check(DATABASE, seconds=12)
def database() -> Iterator[Finding]:
    """Whether PostgreSQL answers, and can be written by us."""
    where = (
        "Start script/server, or look at its log: it runs this one."
        if settings.EMBEDDED_POSTGRES
        else ("Look at DATABASE_URL and at the server.")
    )
    begun = monotonic()
    try:
        version, encoding, standby, schema, may_create = _row(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),"
            " pg_is_in_recovery(), current_schema(),"
            " coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
        )
    except OperationalError as error:
        reason = mask_text(str(error).strip().partition("\n")[0])
        yield fail(f"PostgreSQL can't be used: {reason}", where)
        return
    took = (monotonic() - begun) * 1000
    major = version // 10_000
    if major < OLDEST:
        yield fail(f"PostgreSQL {major} is too old.", f"Use {OLDEST} or later.")
    elif encoding != "UTF8":
        yield fail(f"The database's encoding is {encoding}.", "Make it with ENCODING 'UTF8'.")
    elif standby:
        yield fail("The database is a standby: it can't be written.", "Use the primary.")
    elif not may_create:
        yield fail(
            f"The account may not create tables in the schema {schema}: classes can't be made.",
            f"GRANT CREATE ON SCHEMA {schema or 'public'} to it.",
        )
    else:
        yield ok(f"PostgreSQL {major}.{version % 10_000}, reached in {took:.0f} ms")


@check("database settings", needs=(DATABASE,))
def database_settings() -> Iterator[Finding]:
    """Settings of the server that lose data, or cost speed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings")
        setting: dict[str, str] = dict(cursor.fetchall())
    has_problem = False
    for name in ("fsync", "full_page_writes"):
        if setting[name] == "off":
            has_problem = True
            yield fail(f"{name} is off: a crash destroys the database.", f"Set {name} = on.")
    if setting["synchronous_commit"] == "off":
        has_problem = True
        yield warn(
            "synchronous_commit is off: a crash loses what was answered a moment before.",
            "Set synchronous_commit = on.",
        )
    if setting["autovacuum"] == "off":
        has_problem = True
        yield warn("autovacuum is off: tables only grow.", "Set autovacuum = on.")
    buffers = int(setting["shared_buffers"]) * int(setting["block_size"])
    (size,) = _row("SELECT pg_database_size(current_database())")
    if buffers < 256 * _MEGABYTE and size > 4 * buffers:
        has_problem = True
        yield warn(
            f"shared_buffers is {buffers // _MEGABYTE} MB for a database of "
            f"{size // _MEGABYTE} MB.",
            "A quarter of the machine's memory is usual.",
        )
    most = int(setting["max_connections"]) - int(setting["superuser_reserved_connections"])
    needed = settings.WEB_WORKERS * settings.WEB_THREADS + lanes.threads() + 5
    if needed > most:
        has_problem = True
        yield warn(
            f"This machine's processes may open {needed} connections, the server takes {most}.",
            "Raise max_connections, or lower WEB_WORKERS, WEB_THREADS or WORKER_CONCURRENCY.",
        )
    # A dump locks every table, a restore every table and index, in one transaction.
    (relations,) = _row("SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'i', 'I', 't')")
    locks = int(setting["max_locks_per_transaction"]) * int(setting["max_connections"])
    if relations > locks:
        has_problem = True
        yield warn(
            f"There are {relations} tables and indexes and room for {locks} locks: a backup "
            "couldn't be restored here.",
            f"Set max_locks_per_transaction to {2 * relations // int(setting['max_connections'])}.",
        )
    if not has_problem:
        yield ok(f"durable, {buffers // _MEGABYTE} MB of shared_buffers, {most} connections")


@check("database health", needs=(DATABASE,))
def database_health() -> Iterator[Finding]:
    """Transactions that hold things up, and identifiers that run out."""
    has_problem = False
    count, seconds = _row(
        "SELECT count(*), coalesce(max(extract(epoch FROM now() - xact_start)), 0)"
        " FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%%'"
        " AND now() - xact_start > make_interval(secs => %s)",
        _LONG_TRANSACTION,
    )
    if count:
        has_problem = True
        yield warn(
            f"{count} transactions do nothing, the oldest for {seconds / 60:.0f} minutes: they "
            "hold locks and keep old rows alive.",
            "pg_stat_activity names them; end them with pg_terminate_backend.",
        )
    (age,) = _row("SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()")
    if age > _WRAPAROUND:
        has_problem = True
        yield fail(f"Transaction ids are {age:,} old and run out at 2³¹.", "VACUUM FREEZE now.")
    (broken,) = _row(
        "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE NOT i.indisvalid AND n.nspname = current_schema() AND c.relkind = 'i'"
        " AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p"
        " WHERE p.index_relid = i.indexrelid)"
    )
    if broken:
        has_problem = True
        yield warn(
            f"{broken} indexes are invalid: building them was broken off.",
            "script/manage build_indexes builds those of classes; REINDEX INDEX CONCURRENTLY"
            " others.",
        )
    if not has_problem:
        yield ok("no transactions that hang, no invalid indexes")


@check("migrations", needs=(DATABASE,))
def migrations() -> Iterator[Finding]:
    """Whether database and code are of one release."""
    loader = MigrationLoader(connection, ignore_no_migrations=True)
    applied = set(loader.applied_migrations)
    missing = sorted(f"{app}.{name}" for app, name in set(loader.graph.nodes) - applied)
    if missing:
        yield fail(
            f"{len(missing)} migrations aren't applied, first {missing[0]}.",
            "script/manage prepare",
        )
    ours = {config for config, _ in loader.disk_migrations}
    newer = sorted(
        f"{app}.{name}" for app, name in applied - set(loader.disk_migrations) if app in ours
    )
    if newer:
        yield fail(
            f"The database is of a newer release: {newer[-1]} isn't known here.",
            "Run the release that made it.",
        )
    if not (missing or newer):
        yield ok(f"{len(applied)} applied")


@check("backup programs", needs=(DATABASE,), seconds=25)
def backup_programs() -> Iterator[Finding]:
    """Whether ``backup`` and ``restore`` find PostgreSQL's programs."""
    (version,) = _row("SELECT current_setting('server_version_num')::int")
    try:
        programs = postgres.programs(version // 10_000)
    except BackupError as error:
        yield warn("script/manage backup can't work here.", str(error))
    else:
        yield ok(f"pg_dump {programs.major}")


@check("redis", seconds=8)
def redis_server() -> Iterator[Finding]:
    """Whether Redis answers and keeps what is queued."""
    where = (
        "Start script/server, or look at its log: it runs this one."
        if settings.EMBEDDED_REDIS
        else ("Look at REDIS_URL and at the server.")
    )
    client = asking_once(settings.REDIS_URL, 3, decode_responses=True)
    with client:
        try:
            info: dict[str, Any] = client.info()
        except redis.RedisError as error:
            yield fail(f"Redis can't be used: {mask_text(str(error))}", where)
            return
        has_problem = False
        most, policy = int(info.get("maxmemory", 0)), info.get("maxmemory_policy", "noeviction")
        if most and policy not in ("noeviction", "volatile-ttl", "volatile-lru"):
            has_problem = True
            yield fail(
                f"maxmemory-policy is {policy}: queued tasks may be thrown away.",
                "Set maxmemory-policy to noeviction.",
            )
        if most and int(info.get("used_memory", 0)) > 0.9 * most:
            has_problem = True
            yield warn("Redis has used nine tenths of maxmemory.", "Raise maxmemory.")
        if "err" in (info.get("aof_last_write_status"), info.get("rdb_last_bgsave_status")):
            has_problem = True
            yield fail("Redis can't write to its disk.", "Look at its log, and at the disk.")
        if not info.get("aof_enabled") and not _saves(client):
            has_problem = True
            yield warn(
                "Redis keeps nothing on the disk: a restart loses tasks that are queued.",
                "Set appendonly yes.",
            )
        if info.get("role") not in (None, "master"):
            has_problem = True
            yield fail("Redis is a replica: it can't be written.", "Use the primary.")
        if not has_problem:
            yield ok(f"Redis {info.get('redis_version', '')}")


def _saves(client: redis.Redis) -> bool:
    """Whether Redis makes snapshots; True where it doesn't say."""
    try:
        answer: Any = client.config_get("save")
    except redis.RedisError:
        return True
    return bool(answer.get("save"))
