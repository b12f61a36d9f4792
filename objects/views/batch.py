"""``/batch``: several requests in one, in order.

Each item is routed, checked and counted like a request of its own, with the credentials of the
whole.
Without ``transaction`` every item succeeds or fails alone; with it all succeed, or nothing is
done and the answer is the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypedDict

from django.db import transaction
from msgspec import Meta

from backend.http.bodies.parsers import query_parameters
from backend.http.call import Call
from backend.http.exceptions import as_service_error
from backend.http.idempotency import Keeping
from backend.http.rate_limits import enter_items, enter_together
from backend.http.renderers import Answer
from backend.http.targets import Target, answer_apart, target_of
from backend.http.views import METHODS, ServiceView, check_context
from backend.kernel.errors import (
    InvalidJSON,
    OperationForbidden,
    ServiceError,
    TransactionConflict,
    UnderMaintenance,
)
from backend.kernel.request_context import Current, current
from backend.kernel.texts.shown import shown
from backend.limits import Request, rules_for
from backend.openapi import answer, describes, ref
from backend.settings.conf import service_settings
from objects import service
from objects.core.names import check_class_name
from objects.database.transactions import all_or_nothing
from objects.service import Created
from objects.views.classes import ObjectsView, created_body


class BatchItem(TypedDict):
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: Annotated[str, Meta(description="With the mount path: `/api/classes/Note`.")]
    body: NotRequired[dict[str, Any]]


class BatchForm(TypedDict):
    requests: list[BatchItem]
    transaction: NotRequired[
        Annotated[
            bool | None, Meta(description="All or nothing.", extra_json_schema={"default": False})
        ]
    ]


BatchAnswer: TypeAlias = Annotated[
    dict[str, Any],
    Meta(
        title="BatchAnswer",
        min_length=1,
        max_length=1,
        extra_json_schema={"properties": {"success": {}, "error": ref("ErrorAnswer")}},
    ),
]


class BatchView(ServiceView):
    """Run the requests of a batch."""

    tag = "Batch"
    gives_refusals = False  # its items do

    def keeping_of(self, call: Call, **kwargs: str) -> Keeping:
        # What only reads is never kept: clients who may write nothing must not fill the table.
        kinds = {item.keeping for item in _items(call) if item.call.method != "GET"}
        if not kinds:
            return Keeping.NOT
        return Keeping.IN_TRANSACTION if kinds <= {Keeping.IN_TRANSACTION} else Keeping.AFTERWARDS

    @describes(
        "batch",
        "Several requests in one, in order",
        request=BatchForm,
        response=answer("One answer for each request.", list[BatchAnswer]),
    )
    def post(self, call: Call) -> Answer:
        items = _items(call)
        requests = [item.request for item in items]
        together = call.body.get("transaction")
        if together is None or together is False:
            for item, refusal in zip(items, enter_items(requests), strict=True):
                item.refusal = refusal
            answers = _apart if call.in_transaction else _answers
            results = [answer for group in _groups(items) for answer in answers(group)]
            # The log names the first error, with the status of the whole batch.
            failed = next((item for item in items if item.error is not None), None)
            if failed is not None:
                failed.explain_in(current())
            return Answer(results, headers=_headers(items))
        if together is not True:
            raise InvalidJSON("transaction: expected true or false")
        _check_together(items)
        enter_together(requests)
        return Answer(_together(items))


def _check_together(items: list[_Item]) -> None:
    for item in items:
        if not item.in_transaction:
            raise OperationForbidden(f"{item.place}: signing in can't be part of a transaction")


class _Item:
    """One request of a batch, routed."""

    def __init__(
        self, place: str, path: str, call: Call, view: ServiceView, names: Mapping[str, str]
    ) -> None:
        self.place = place
        self.call = call
        self.refusal: ServiceError | None = None
        self.error: ServiceError | None = None
        """The error that is its answer."""
        self._path = path
        self._view = view
        self._names = names

    @property
    def request(self) -> Request:
        """This item as rate limits see it."""
        call = self.call
        return Request(
            rules_for(self._path, call.method),
            self._path,
            call.address,
            call.principal,
            call.key,
            (call.params, call.body),
        )

    def run(self) -> dict[str, Any]:
        self.error = None
        if self.refusal is not None:
            raise self.refusal
        # Every run gets a body of its own: a repeated transaction begins from the same one.
        call = replace(self.call, body=dict(self.call.body))
        with _context(call.body.pop("_context", None)):
            return {"success": answer_apart(self._view, call, self._names).body}

    def failed(self, error: Exception) -> dict[str, Any]:
        """The answer for this item when it has failed."""
        return self.refused(as_service_error(error, self.call.request_id))

    def explain_in(self, request: Current) -> None:
        """Make this item's error the one that the log line of the whole request has."""
        request.error, request.names = self.error, self._names
        request.item = f"{self.call.method} {self._path}"

    def refused(self, error: ServiceError) -> dict[str, Any]:
        """The answer for this item with an error that a client may see."""
        self.error = error
        return {"error": error.body()}

    @property
    def in_transaction(self) -> bool:
        return self._view.in_transaction

    @property
    def keeping(self) -> Keeping:
        return self._view.keeping_of(self.call, **self._names)

    @property
    def creates_in(self) -> str | None:
        """The class in which this request creates an object; None if it does something else."""
        if self.refusal is not None or "_context" in self.call.body:
            return None
        if type(self._view) is ObjectsView and self.call.method == "POST":
            return self._names["class_name"]
        return None


@contextmanager
def _context(value: object) -> Iterator[None]:
    """Let a request of a batch have a context of its own; None is that of the batch.

    Raises ``InvalidJSON`` for anything but an object.
    """
    if value is None:
        yield
        return
    now = current()
    outer, now.context = now.context, check_context(value)
    try:
        yield
    finally:
        now.context = outer


def _groups(items: list[_Item]) -> Iterator[list[_Item]]:
    """Group neighbours that create objects of one class; every other item is a group of one."""
    for class_name, group in groupby(items, key=lambda item: item.creates_in):
        if class_name is None:
            for item in group:
                yield [item]
        else:
            yield list(group)


def _answers(group: list[_Item]) -> list[dict[str, Any]]:
    if len(group) == 1:
        return [_answer(group[0])]
    return [
        item.refused(outcome)
        if isinstance(outcome, ServiceError)
        else {"success": created_body(outcome)}
        for item, outcome in zip(group, _create(group), strict=True)
    ]


def _headers(items: list[_Item]) -> dict[str, str]:
    """The headers of the whole: those of maintenance mode, if any item was refused for it."""
    is_refused = any(isinstance(item.error, UnderMaintenance) for item in items)
    return dict(UnderMaintenance.headers) if is_refused else {}


def _apart(group: list[_Item]) -> list[dict[str, Any]]:
    """As ``_answers`` inside of a transaction: what fails undoes nothing but itself."""
    if len(group) > 1:
        # Each item alone will show the reason.
        with suppress(Exception), transaction.atomic():
            return _results(group)
    return [_answer_apart(item) for item in group]


def _answer_apart(item: _Item) -> dict[str, Any]:
    try:
        with transaction.atomic():
            return item.run()
    except TransactionConflict:
        # All of it is done again.
        raise
    except Exception as error:
        return item.failed(error)


def _create(group: list[_Item]) -> list[Created | ServiceError]:
    first = group[0].call
    bodies = [item.call.body for item in group]
    try:
        return service.create_many(
            first.principal, check_class_name(str(group[0].creates_in)), bodies
        )
    except Exception as error:
        shown = as_service_error(error, first.request_id)
        return [shown for _ in group]


_MOST_OF_MASTER: Final = 10_000
"""Requests of a batch with one of the master keys, whose bodies may be larger as well."""


def _items(call: Call) -> list[_Item]:
    requests = call.body.get("requests")
    if not isinstance(requests, list):
        raise InvalidJSON("requests must be an array")
    limit = service_settings.BATCH_LIMIT
    if call.principal.is_master:
        limit = max(limit, _MOST_OF_MASTER)
    if len(requests) > limit:
        raise InvalidJSON(
            f"Batch request contains {len(requests)} sub-requests, which exceeds the limit of"
            f" {limit}."
        )
    find_target = cache(_target)  # most batches write to one class
    return [
        _item(call, request, f"requests.{index}", find_target)
        for index, request in enumerate(requests)
    ]


def _target(path: str) -> Target:
    """Resolve a path; raises ``InvalidJSON`` if it leads nowhere."""
    target = target_of(path)
    if target is None:
        raise InvalidJSON(f"cannot route batch path {shown(path)}")
    return target


def _item(call: Call, request: object, place: str, find_target: Callable[[str], Target]) -> _Item:
    if not isinstance(request, dict):
        raise InvalidJSON(f"batch request path must be a string ({place}: expected an object)")
    path = request.get("path")
    if not isinstance(path, str):
        raise InvalidJSON(f"batch request path must be a string ({place}.path)")
    method = request.get("method")
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise InvalidJSON(
            f"cannot route {'undefined' if method is None else shown(method)} {shown(path)}"
            f" ({place}.method: expected one of {', '.join(METHODS)})"
        )
    body = request.get("body")
    if body is None or body == []:  # PHP writes an object without fields as []
        body = {}
    if not isinstance(body, dict):
        raise InvalidJSON(f"{place}.body: expected an object")
    target = find_target(path)
    if target.view_class is BatchView:
        raise InvalidJSON(f"nested batch requests are not allowed ({place}.path)")
    query = path.partition("?")[2]
    params: dict[str, Any] = dict(query_parameters(query)) if query else {}
    if method.upper() == "GET":
        params.update(body)
    item = replace(call, method=method.upper(), params=params, body=body)
    return _Item(place, target.path, item, target.view_class(), target.names)


def _answer(item: _Item) -> dict[str, Any]:
    try:
        return item.run()
    except Exception as error:
        return item.failed(error)


def _results(group: list[_Item]) -> list[dict[str, Any]]:
    """The answers of a group; an error is raised."""
    if len(group) == 1:
        return [group[0].run()]
    bodies = [item.call.body for item in group]
    principal = group[0].call.principal
    outcomes = service.create_many(principal, check_class_name(str(group[0].creates_in)), bodies)
    return [
        {"success": created_body(outcome)} for outcome in outcomes if isinstance(outcome, Created)
    ]


def _together(items: list[_Item]) -> list[dict[str, Any]]:
    return all_or_nothing(
        lambda: [answer for group in _groups(items) for answer in _results(group)]
    )
