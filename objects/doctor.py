"""What ``manage.py doctor`` looks at in the object store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, Exists, OuterRef, Sum
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat

from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.kernel.principal import CLIENT
from backend.settings.conf import service_settings
from objects.access.protection import hidden_fields
from objects.changes import capture
from objects.core.names import USER
from objects.core.schema.inference import MAX_FIELDS
from objects.database import catalog, hold, maintenance
from objects.database.orm import orm_queries
from objects.definitions import class_locks, class_rows, indexes, registry
from objects.files import quotas, storage
from objects.files.models import StoredFile
from objects.learned import evidence, overview
from objects.push.adapters import setup
from objects.push.models import Push, PushTarget
from objects.reencryption import unreadable
from objects.service import public_access
from objects.sql.tables import ClassTable
from objects.users.models import MailToken
from objects.users.passkeys import relying_party
from objects.users.passkeys.models import Passkey, PasskeyChallenge
from objects.users.sessions import tokens

_NEEDS = (DATABASE, "migrations")
_SAMPLE = 20  # files
_STORED_FOR = timedelta(hours=1)
_OVERDUE = timedelta(days=1)
_SHOWN = 5
_PUSH_OVERDUE = timedelta(minutes=10)
_MANY_FIELDS = 0.8
_NEARLY = 0.9


@check("indexes", needs=_NEEDS, seconds=10)
def declared_indexes() -> Iterator[Finding]:
    """Whether the database has the tables and indexes that classes declare, and no others."""
    tables = [*registry.all_classes()]
    lost = catalog.missing_tables([table.storage for table in tables])
    if lost:
        yield fail(f"{len(lost)} classes have no table, first {lost[0]}.", "Restore a backup.")
    missing = [
        (f"{table.class_name}.{index.name}", index.unique)
        for table in tables
        if table.storage not in lost
        for index in indexes.missing(table)
    ]
    unique = [name for name, is_unique in missing if is_unique]
    others = [name for name, is_unique in missing if not is_unique]
    if unique:
        yield fail(
            f"{len(unique)} unique indexes are missing, first {unique[0]}: duplicates are "
            "accepted.",
            "script/manage build_indexes, after removing duplicates that are stored by now",
        )
    if others:
        yield warn(
            f"{len(others)} declared indexes are missing, first {others[0]}: what they are for is "
            "slow.",
            "script/manage build_indexes",
        )
    undeclared = [
        f"{name} of {table.class_name}" for table in tables for name in _undeclared(table)
    ]
    if undeclared:
        yield warn(
            f"{len(undeclared)} indexes are in the database that no class declares, first "
            f"{undeclared[0]}: they take space, and unique ones refuse values.",
            "Workers of jobs drop them when no transaction uses their table; "
            "script/manage build_indexes drops them now",
        )
    removed = class_rows.removed_partitions()
    if removed:
        yield warn(
            f"{len(removed)} tables of removed classes are still there, first {removed[0]}.",
            "Workers of jobs drop them when no transaction uses them.",
        )
    if not lost and not missing and not undeclared and not removed:
        yield ok(f"all of {len(tables)} classes are there")


def _undeclared(table: ClassTable) -> list[str]:
    names = indexes.undeclared(table)
    if not names:
        return names
    with class_locks.building_if_free(table.class_id) as is_free:
        # An index is declared when it is built.
        return indexes.undeclared(table) if is_free else []


@check("push", needs=_NEEDS)
def push_notifications() -> Iterator[Finding]:
    """Whether the services of notifications can be used, and whether pushes are sent."""
    adapters = service_settings.PUSH_ADAPTERS
    problems = [*setup.problems()]
    for problem in problems:
        yield fail(f"Pushes can't be sent: {problem}", "docs/push.md says what each service needs.")
    with orm_queries():
        pending = PushTarget.objects.filter(push=OuterRef("pk"), state=PushTarget.State.PENDING)
        is_overdue = Exists(pending.filter(due_at__lt=Now() - _PUSH_OVERDUE))
        overdue = Push.objects.exclude(state=Push.State.ENDED).filter(is_overdue).first()
    if overdue is not None:
        yield warn(
            f"Targets of the push {overdue.pk} have been due for more than"
            f" {_PUSH_OVERDUE.seconds // 60} minutes.",
            "Look at the workers (script/manage doctor, processes) and at the admin's page Pushes.",
        )
    if not adapters:
        yield ok("pushes are switched off")
    elif set(adapters.values()) == {"log"}:
        yield ok("pushes are written to the log and not sent: PUSH_ADAPTERS names no service")
    elif not problems:
        names = ", ".join(f"{name} by {adapter}" for name, adapter in sorted(adapters.items()))
        yield ok(f"pushes are sent to {names}")


@check("learned indexes", needs=_NEEDS, seconds=10)
def learned_indexes() -> Iterator[Finding]:
    """What became of the indexes that queries asked for."""
    learned = evidence.learned()
    names = {table.class_id: table.class_name for table in registry.all_classes()}
    failed = [
        index
        for index in learned
        # One that was built and dropped again wasn't worth having: nothing is wrong.
        if index.state == "failed" and not index.may_retry and index.built_at is None
    ]
    for index in failed[:_SHOWN]:
        yield warn(
            f"{names.get(index.class_id, 'A class')} has no index on"
            f" {overview.fields_text(index.fields)}: {index.reason}.",
            f"script/manage indexes {names.get(index.class_id, 'CLASS')} shows the queries; "
            "declare the index in /schemas if they need it.",
        )
    if not failed:
        valid = sum(index.state == "valid" for index in learned)
        yield ok(f"{valid} in use; AUTO_INDEX is {service_settings.AUTO_INDEX}")


@check("fields of classes", needs=_NEEDS, seconds=10)
def fields_of_classes() -> Iterator[Finding]:
    """Whether classes can still get new fields."""
    counts = {table.class_name: len(table.schema.fields) for table in registry.all_classes()}
    made = {table.class_name: len(table.schema.client_fields) for table in registry.all_classes()}
    most = service_settings.CLIENT_FIELD_LIMIT
    crowded = [name for name, count in made.items() if count > _MANY_FIELDS * most]
    for name in crowded:
        yield warn(
            f"{name} has {made[name]:,} of the {most:,} fields that clients can add to a class.",
            "Declare those that you need in /schemas or on the class's page in the admin, remove "
            "the others, and let addField in the permissions of the class be yours.",
        )
    full = [name for name, count in counts.items() if count > _MANY_FIELDS * MAX_FIELDS]
    for name in full:
        yield warn(
            f"{name} has {counts[name]:,} of the {MAX_FIELDS:,} fields that a class can have.",
            "Remove those that nobody uses, and let addField in the permissions of the class be "
            "yours: what clients put into names of fields belongs into an object.",
        )
    if not full and not crowded:
        name = max(counts, key=counts.__getitem__)
        yield ok(f"at most {counts[name]:,}, in {name}")


@check("open classes", needs=_NEEDS, seconds=10)
def open_classes() -> Iterator[Finding]:
    """Which classes everybody may write objects of."""
    listed = public_access.open_classes()
    if not listed:
        yield ok("none: the public writes no objects")
        return
    named = "; ".join(
        f"{open_class.class_name} ({', '.join(open_class.actions)})" for open_class in listed
    )
    yield warn(
        f"Everybody may write objects of {_number(len(listed), 'class', 'classes')}: {named}.",
        "script/manage close_class NAME..., or --all, lets logged-in users alone write them. "
        "CLASS_PERMISSIONS_DEFAULT=authenticated does so for new classes.",
    )


@check("readable personal fields", needs=_NEEDS, seconds=10)
def readable_personal_fields() -> Iterator[Finding]:
    """Which fields that look like addresses, secrets or names everybody may read."""
    exposed = public_access.exposed_fields()
    if not exposed:
        yield ok("none, by the names of fields")
        return
    named = "; ".join(f"{each.class_name} ({', '.join(each.fields)})" for each in exposed)
    yield warn(
        f"Everybody may read fields that look personal in"
        f" {_number(len(exposed), 'class', 'classes')}: {named}.",
        "Hide them by protectedFields in the permissions of the class, or let logged-in users alone"
        " read it: script/manage close_class NAME --reading.",
    )


@check("addresses of users", needs=_NEEDS)
def addresses_of_users() -> Iterator[Finding]:
    """Whether strangers are shown the e-mail addresses of users whom they may read."""
    table = registry.find(USER)
    assert table is not None, "the class is offered by this application"
    if "email" in hidden_fields(CLIENT, table):
        yield ok("hidden from others")
    else:
        yield warn(
            "Everybody who may read a user is shown the user's e-mail address.",
            'Name email for the group "*" in PROTECTED_FIELDS, or in protectedFields of _User, by '
            "PUT /schemas/_User or in the admin.",
        )


@check("captured changes", needs=_NEEDS, seconds=10)
def captured_changes() -> Iterator[Finding]:
    """Whether live queries hear of every class."""
    tables = capture.not_captured()
    if tables:
        yield fail(
            f"Live queries don't hear of changes in {len(tables)} tables, first {tables[0]}.",
            "Enable the trigger objects_change on objects_object and its partitions; script/manage"
            " prepare makes those of models.",
        )
    outdated = capture.FUNCTIONS.outdated()
    if outdated:
        yield fail(
            f"The database has another version of {', '.join(outdated)} than this service.",
            "Run script/manage prepare.",
        )
    if not tables and not outdated:
        yield ok("every table has its triggers")


@check("maintenance mode", needs=_NEEDS)
def maintenance_mode() -> Iterator[Finding]:
    """Whether writes are refused on purpose."""
    state = maintenance.state()
    if state is None:
        yield ok("off")
    else:
        yield warn(
            f"On since {state.since:%Y-%m-%d %H:%M} UTC: nobody can write.",
            "script/manage maintenance off",
        )


@check("restored instance", needs=_NEEDS)
def restored_instance() -> Iterator[Finding]:
    """Whether what goes out is held since a restore."""
    since = hold.since()
    if since is None:
        yield ok("nothing is held")
    else:
        yield warn(
            f"Restored at {since:%Y-%m-%d %H:%M} UTC: schedules, webhooks, pushes, emails and "
            "transactions are held.",
            "script/manage resume, when the instance that was backed up doesn't run any more.",
        )


@check("stored secrets", needs=_NEEDS, seconds=10)
def stored_secrets() -> Iterator[Finding]:
    """Whether this ``SECRET_KEY`` reads what an earlier one wrote."""
    lost = unreadable()
    if lost:
        yield fail(
            f"{lost} stored secrets can't be read: second factors that log nobody in, wallets that "
            "sign nothing, endpoints of networks that can't be asked.",
            "Put the SECRET_KEY of before into SECRET_KEY_FALLBACKS.",
        )
    else:
        yield ok("all can be read")


@check("passkeys", needs=_NEEDS)
def passkeys() -> Iterator[Finding]:
    """Whether browsers let the service's pages ask for passkeys."""
    domain = relying_party.domain()
    wrong = relying_party.problems()
    chosen = service_settings.WEBAUTHN_RP_ID or service_settings.WEBAUTHN_ORIGINS
    if not wrong:
        yield ok(f"of {domain}, used at {', '.join(relying_party.origins())}")
    elif chosen or Passkey.objects.exists():
        yield warn(
            f"Passkeys can't be used: {'; '.join(wrong)}.",
            "Set PUBLIC_URL, or WEBAUTHN_RP_ID and WEBAUTHN_ORIGINS, to where your pages are.",
        )
    else:
        yield ok(f"nobody has one, and nobody can: {'; '.join(wrong)}")


@check("expired rows", needs=_NEEDS)
def expired_rows() -> Iterator[Finding]:
    """Whether what has expired is removed."""
    overdue = Now() - _OVERDUE
    with orm_queries():
        left = {
            "mailed tokens": MailToken.objects.filter(expires_at__lt=overdue).count(),
            "challenges": PasskeyChallenge.objects.filter(expires_at__lt=overdue).count(),
        }
    if service_settings.EXPIRE_INACTIVE_SESSIONS:
        left["sessions"] = tokens.count_expired(_OVERDUE)
    summary = ", ".join(f"{count:,} {what}" for what, count in left.items() if count)
    if summary:
        yield warn(
            f"{summary} expired more than a day ago and are still there.",
            "Beat and a worker remove them every hour: see that they run.",
        )
    else:
        yield ok("removed")


@check("files", needs=(*_NEEDS, "file storage"), seconds=15)
def files() -> Iterator[Finding]:
    """Whether storage has the files that the database knows; how much there is."""
    with orm_queries():
        stored = StoredFile.objects.filter(complete=True, created_at__lt=Now() - _STORED_FOR)
        names = list(stored.order_by("-created_at").values_list("pk", flat=True)[:_SAMPLE])
        total = StoredFile.objects.aggregate(files=Count("*"), bytes=Sum("size"))
    missing = [name for name in names if not _is_there(name)]
    if missing:
        yield fail(
            f"{len(missing)} of the newest {len(names)} files aren't in storage: {missing[0]}.",
            "Look at FILE_STORAGE and its settings; restore them from a backup.",
        )
    unused = "off; script/manage clean_files lists unused ones"
    clean = "on" if service_settings.FILE_CLEAN_UP else unused
    shown = filesizeformat(int(total["bytes"] or 0)).replace("\xa0", " ")
    public = quotas.usage_of(quotas.PUBLIC)
    if public.allowed and public.used > _NEARLY * public.allowed:
        yield warn(
            f"Uploads without a user have used {public.used:,} of FILE_QUOTA_PUBLIC's "
            f"{public.allowed:,} bytes: soon nobody can upload without an account.",
            "Remove files that nobody needs, set FILE_QUOTA_PUBLIC, or FILE_UPLOAD_PUBLIC=off.",
        )
    if not missing:
        count = _number(total["files"], "file", "files")
        yield ok(f"{count}, {shown}; FILE_CLEAN_UP is {clean}")


def _number(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"


def _is_there(name: str) -> bool:
    pieces = storage.read(name, 0, 1)
    if pieces is None:
        return False
    for _ in pieces:  # to its end, so that it is closed
        pass
    return True
