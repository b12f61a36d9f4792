"""``/aggregate``: pipelines over a class, for the master key."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from backend.http.bodies.parsers import decoded_parameters
from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.openapi import JSON_TEXT, answer, describes, parameter, query
from objects import service
from objects.core.names import ClassName
from objects.core.pipeline.parser import parse_aggregation
from objects.views.base import ClassView


class AggregateResults(TypedDict):
    results: list[Any]


class AggregateView(ClassView):
    """Run a pipeline, or list the distinct values of a field."""

    tag = "Objects"
    requires = Requires.MASTER_KEY

    @describes(
        "aggregate",
        "Run a pipeline, or list the distinct values of a field",
        parameters=(
            query(
                "pipeline",
                JSON_TEXT,
                'Stages as JSON: `[{"$group": {"_id": "$city", "n": {"$sum": 1}}}]`.',
            ),
            query("distinct", {"type": "string"}, "The field whose values to list."),
            parameter("where"),
            query(
                "explain",
                {"type": "string"},
                "`true`, or a verbosity of MongoDB: PostgreSQL's plan in place of the results.",
            ),
        ),
        response=answer(
            "The documents that the pipeline returns, or the distinct values.", AggregateResults
        ),
        description="Stages can also be parameters themselves: `$match`, `$group`, …",
    )
    def get(self, call: Call, class_name: ClassName) -> Answer:
        aggregation = parse_aggregation(decoded_parameters(call.params))
        results = service.aggregate(call.principal, class_name, aggregation)
        return Answer({"results": [msgspec.Raw(text.encode()) for text in results]})
