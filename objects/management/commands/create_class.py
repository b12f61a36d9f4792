"""``manage.py create_class NAME``: a class with fields, permissions and indexes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.errors import InvalidClassName, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import MASTER
from objects.core.names import check_class_name
from objects.core.schema.changes import new_schema
from objects.core.values import FieldKind
from objects.service import classes, public_access

_SPECIAL = ("text", "2dsphere")
_KINDS = get_args(FieldKind)


class Command(BaseCommand):
    help = "Create a class. One that exists already is left as it is, and is an error."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("class_name", metavar="NAME")
        parser.add_argument(
            "--field",
            action="append",
            default=[],
            metavar="NAME:TYPE[:CLASS]",
            help="a field: title:String, author:Pointer:_User, tags:Relation:Tag; String, Number, "
            "Boolean, Date, File, GeoPoint, Polygon, Array, Object, Bytes, Pointer, Relation",
        )
        parser.add_argument(
            "--required",
            action="append",
            default=[],
            metavar="NAME,…",
            help="fields that every object has to have",
        )
        parser.add_argument(
            "--clp",
            metavar="JSON|FILE",
            help='class-level permissions as /schemas takes them: \'{"find": {"*": true}}\'',
        )
        for option, what in (("--index", "an index"), ("--unique", "a unique index")):
            parser.add_argument(
                option,
                action="append",
                default=[],
                metavar="[NAME=]FIELD,…",
                help=f"{what}; -FIELD is descending, FIELD:text and FIELD:2dsphere are for search",
            )
        parser.add_argument(
            "--if-missing",
            action="store_true",
            help="a class that exists and has all of this already is no error",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["class_name"]
        try:
            check_class_name(name)
            body = _body(options)
            new_schema(name, body)  # says what is wrong before a class of that name is looked for
            existing = _existing(name)
            if existing is None:
                classes.create(MASTER, name, body)
                self.stdout.write(f"created: {name}")
                self._warn_if_open(name)
                return
        except ServiceError as error:
            raise CommandError(error.message) from error
        if not options["if_missing"]:
            raise CommandError(
                f"the class {name} exists already; --if-missing takes that for success where it "
                "has all of this"
            )
        lacking = [*_lacking(existing, body)]
        if lacking:
            raise CommandError(f"the class {name} exists and differs: {', '.join(lacking)}")
        self.stdout.write(f"exists: {name}")

    def _warn_if_open(self, name: str) -> None:
        for open_class in public_access.open_classes():
            if open_class.class_name == name:
                self.stderr.write(
                    f"{name}: everybody may {', '.join(open_class.actions)} its objects;"
                    f" script/manage close_class {name} ends that, --clp says it from the start"
                )


def _existing(name: str) -> dict[str, Json] | None:
    try:
        return classes.schema(MASTER, check_class_name(name))
    except InvalidClassName:
        return None


def _body(options: dict[str, Any]) -> dict[str, Any]:
    """The options as ``POST /schemas`` would have them."""
    fields: dict[str, dict[str, Json]] = {}
    for text in options["field"]:
        name, field = _field(text)
        if name in fields:
            raise CommandError(f"--field: {name} is given twice")
        fields[name] = field
    for name in (part for text in options["required"] for part in text.split(",")):
        if name not in fields:
            raise CommandError(f"--required: there is no --field {name}")
        fields[name]["required"] = True
    indexes: dict[str, Json] = {}
    for unique, texts in ((False, options["index"]), (True, options["unique"])):
        for text in texts:
            name, index = _index(text)
            if name in indexes:
                raise CommandError(f"--index: {name} is given twice")
            indexes[name] = {"fields": index, "unique": True} if unique else index
    body: dict[str, Json] = {"fields": dict(fields), "indexes": indexes}
    if options["clp"] is not None:
        body["classLevelPermissions"] = _json(options["clp"])
    return body


def _field(text: str) -> tuple[str, dict[str, Json]]:
    name, _, definition = text.partition(":")
    kind, _, target = definition.partition(":")
    if not (name and kind):
        raise CommandError(f"--field: expected NAME:TYPE[:CLASS], got {text!r}")
    if kind not in _KINDS:
        raise CommandError(
            f"--field: invalid field type: {kind}; the types are {', '.join(_KINDS)}, and"
            " the class of a Pointer or Relation follows a colon: owner:Pointer:_User"
        )
    field: dict[str, Json] = {"type": kind}
    if target:
        field["targetClass"] = target
    return name, field


def _index(text: str) -> tuple[str, dict[str, Json]]:
    name, equals, fields = text.rpartition("=")
    index: dict[str, Json] = {}
    for part in fields.split(","):
        field, colon, special = part.partition(":")
        if not field.strip("-") or (colon and special not in _SPECIAL):
            raise CommandError(f"--index: expected [NAME=]FIELD,-FIELD,FIELD:text, got {text!r}")
        index[field.removeprefix("-")] = special or (-1 if field.startswith("-") else 1)
    return (name if equals else f"by_{'_'.join(index)}"), index


def _json(text: str) -> Json:
    path = None if text.lstrip().startswith("{") else Path(text)
    try:
        decoded: Json = msgspec.json.decode(text if path is None else path.read_bytes())
    except OSError as error:
        raise CommandError(f"--clp: {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise CommandError(f"--clp: {error}") from None
    return decoded


def _lacking(existing: dict[str, Json], body: dict[str, Any]) -> Iterator[str]:
    """Return the requested parts that the class lacks or that differ."""
    schema = new_schema(check_class_name(str(existing["className"])), body).to_wire()
    for part in ("fields", "indexes"):
        requested, has = body[part], existing.get(part)
        as_shown: Any = schema.get(part)
        for name in requested:
            if not isinstance(has, dict) or has.get(name) != as_shown[name]:
                yield f"{part}.{name}"
    key = "classLevelPermissions"
    if key in body and existing.get(key) != schema.get(key):
        yield key
