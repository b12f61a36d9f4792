"""What the editors of the console complete: fields of a class, operators, stages."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from backend.http.staff_api import StaffAPIView
from backend.site.model_admin import endpoint
from objects.admin.console import statements
from objects.admin.console.pages import USE
from objects.core.names import CREATED_AT, OBJECT_ID, UPDATED_AT, is_class_name
from objects.core.pipeline import accumulators
from objects.core.pipeline.operators import registry as expressions
from objects.core.pipeline.stages import registry as stages
from objects.core.query.operators import registry as operators
from objects.definitions import registry

_MOST_TABLES: Final = 500


class Word(serializers.Serializer[Any]):
    """One completion: what is inserted, what it is, and its description in Markdown."""

    name = serializers.CharField()
    detail = serializers.CharField(default="")
    info = serializers.CharField(default="")


class Words(serializers.Serializer[Any]):
    """The words for one class, by where they can stand."""

    fields_of_class = Word(many=True)
    operators = Word(many=True)
    clauses = Word(many=True)
    stages = Word(many=True)
    accumulators = Word(many=True)
    expressions = Word(many=True)


class WordsView(StaffAPIView):
    """``GET ?class_name=Game``. A class that isn't there has no fields but those of all."""

    permissions = {"GET": USE}

    def get(self, request: Request) -> Response:
        words = Words(
            {
                "fields_of_class": _fields(request.query_params.get("class_name", "")),
                "operators": [_word(name, each) for name, each in operators.OPERATORS.items()],
                "clauses": [_word(name, each) for name, each in operators.CLAUSES.items()],
                "stages": [_word(name, each) for name, each in stages.STAGES.items()],
                "accumulators": _all(accumulators.REGISTERED),
                "expressions": _all(expressions.REGISTERED),
            }
        )
        return Response(words.data)


class TableSerializer(serializers.Serializer[Any]):
    """A class as a table of SQL, with its columns."""

    name = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())


class TablesView(StaffAPIView):
    """What SQL can name, for superusers: the classes, each with its columns."""

    permissions = {"GET": USE}

    def get(self, request: Request) -> Response:
        if not request.user.is_superuser:
            raise PermissionDenied
        tables = [
            {"name": name, "columns": statements.column_names(table)}
            for name, table in islice(statements.readable_classes().items(), _MOST_TABLES)
        ]
        return Response({"tables": TableSerializer(tables, many=True).data})


def _all(registered: Any) -> list[dict[str, str]]:
    return [_word(name, each) for each in registered for name in each.names]


def _word(name: str, described: Any) -> dict[str, str]:
    return {"name": name, "info": described.summary.replace("`", "")}


def _fields(class_name: str) -> list[dict[str, str]]:
    table = registry.find(class_name) if is_class_name(class_name) else None
    fields = {OBJECT_ID: "String", CREATED_AT: "Date", UPDATED_AT: "Date"}
    if table is not None:
        fields |= {name: str(field) for name, field in sorted(table.schema.fields.items())}
    return [{"name": name, "detail": detail} for name, detail in fields.items()]


endpoint("console-words/", WordsView.as_view(), name="console_words")
endpoint("console-tables/", TablesView.as_view(), name="console_tables")
