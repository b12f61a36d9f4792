"""``/aggregate``: pipelines over a class, for the master key."""

from __future__ import annotations

import msgspec

from backend.http.call import Call
from backend.http.parsers import decoded_parameters
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from objects import service
from objects.core.names import ClassName
from objects.core.pipeline.stages import parse_aggregation
from objects.views.base import ClassView


class AggregateView(ClassView):
    """Run a pipeline, or list the distinct values of a field."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call, class_name: ClassName) -> Answer:
        aggregation = parse_aggregation(decoded_parameters(call.params))
        results = service.aggregate(call.principal, class_name, aggregation)
        return Answer({"results": [msgspec.Raw(text.encode()) for text in results]})
