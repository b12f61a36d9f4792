"""The pages of the console: one form each, what it was answered, and what was run before."""

from __future__ import annotations

from itertools import islice
from time import perf_counter
from typing import Any, Final

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from backend.http.context import client_address
from backend.kernel.errors import ServiceError
from backend.settings.conf import service_settings
from backend.site.model_admin import page, render
from objects.admin.browser.cells import value_cell
from objects.admin.console import history, plans, results, statements
from objects.admin.console.forms import FORMS, ConsoleForm, Kind, SqlForm
from objects.admin.console.requests import ApiRequest, Outcome, run
from objects.admin.curl import command
from objects.admin.operations.log_pages import VIEW as VIEW_LOGS
from objects.admin.operations.log_pages import address_of
from objects.admin.people import pages as people
from objects.definitions import registry

_MOST_CLASSES: Final = 500  # in the list of the form
_LONGEST_NOTED: Final = 2_000  # characters of a statement in the log
USE: Final = "objects.use_console"
_TITLES: Final[dict[Kind, str]] = {
    "find": "Find",
    "aggregate": "Aggregate",
    "request": "Any request",
    "sql": "SQL",
}


@page(
    "console/",
    name="console",
    permission=USE,
    title="Console",
    section="Server code",
    icon="terminal",
    position=5,
)
@require_http_methods(["GET", "HEAD", "POST"])
def start(request: HttpRequest) -> HttpResponseBase:
    """Find objects."""
    return _shown(request, "find")


@page("console/<str:kind>/", name="console_form", permission=USE)
@require_http_methods(["GET", "HEAD", "POST"])
def form_page(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Run a pipeline, any request, or SQL."""
    if kind == "sql":
        return _sql_page(request)
    if kind not in FORMS:
        raise Http404("There is no such form.")
    return _shown(request, kind)


def _shown(request: HttpRequest, kind: Kind) -> HttpResponseBase:
    context: dict[str, Any] = {}
    if request.method == "POST":
        form = FORMS[kind](request.POST)
        if form.is_valid():
            context = _run(request, form)
    else:
        form = FORMS[kind](initial=_initial(request, kind, FORMS[kind]))
    names = [table.class_name for table in islice(registry.all_classes(), _MOST_CLASSES)]
    return _render(
        request,
        kind,
        form,
        class_names=names,
        docs=f"{service_settings.MOUNT_PATH}/docs",
        **context,
    )


def _sql_page(request: HttpRequest) -> HttpResponseBase:
    """SQL, for superusers."""
    if not request.user.is_superuser:
        raise PermissionDenied
    context: dict[str, Any] = {}
    if request.method == "POST":
        form = SqlForm(request.POST)
        if form.is_valid():
            context = _run_sql(request, form.cleaned_data["statement"])
    else:
        form = SqlForm(initial=_initial(request, "sql", SqlForm))
    return _render(
        request,
        "sql",
        form,
        is_available=statements.is_available(),
        most_rows=statements.MOST_ROWS,
        **context,
    )


def _run_sql(request: HttpRequest, statement: str) -> dict[str, Any]:
    people.note(request, "console sql", statement=statement[:_LONGEST_NOTED])
    begin = perf_counter()
    rows, refusal, status = None, None, 200
    try:
        rows = statements.run(statement)
    except ServiceError as error:
        refusal, status = error, error.status
    ms = round((perf_counter() - begin) * 1000, 1)
    history.note(request.user, "sql", {"statement": statement}, status, ms)
    table = None
    if rows is not None:
        cells = tuple(tuple(map(value_cell, row)) for row in rows.rows)
        table = results.Table(rows.columns, cells, len(rows.rows))
    return {"rows": rows, "refusal": refusal, "ms": ms, "table": table}


def _render(request: HttpRequest, kind: Kind, form: forms.Form, **context: Any) -> TemplateResponse:
    response = render(
        request,
        f"admin/console/{kind}.html",
        "Console",
        form=form,
        kind=kind,
        tabs=[
            (title, reverse("admin:console_form", args=(name,)), name == kind)
            for name, title in _TITLES.items()
            if name != "sql" or request.user.is_superuser
        ],
        entries=history.entries_of(request.user),
        complaint="Nothing was sent: see what is marked below." if form.errors else "",
        **context,
    )
    response.status_code = 400 if form.errors else 200
    return response


def _initial(request: HttpRequest, kind: Kind, form: type[forms.Form]) -> dict[str, Any]:
    """Return what the form begins with: an earlier request, or what the address names."""
    defaults = {name: field.initial for name, field in form.base_fields.items()}
    entry = request.GET.get("entry", "")
    if entry.isdecimal() and len(entry) < 19:
        earlier = history.fields_of(request.user, int(entry))
        if earlier is not None and earlier[0] == kind:
            # What it doesn't have was empty.
            return {"caller": "master"} | earlier[1]
    named = {name: text for name in defaults if (text := request.GET.get(name, "")[:2_000])}
    return defaults | named


def _run(request: HttpRequest, form: ConsoleForm) -> dict[str, Any]:
    """Carry out the request of a form; return what the page shows of it."""
    api_request = form.request()
    if api_request.method != "GET":
        people.note(
            request,
            "console request",
            method=api_request.method,
            path=api_request.path,
            caller=form.principal.user_id or form.caller_name,
        )
    address = client_address(request.META)
    outcome = run(form.principal, api_request, address)
    history.note(request.user, form.kind, form.cleaned_data, outcome.status, outcome.ms)
    may_see_logs = request.user.has_perm(VIEW_LOGS)
    return {
        "outcome": outcome,
        "who": form.who,
        "curl": _curl(form, api_request),
        "log_address": address_of(outcome.request_id) if may_see_logs else "",
        **_in_words(form, outcome),
    }


def _in_words(form: ConsoleForm, outcome: Outcome) -> dict[str, Any]:
    """Return the parts of a response that aren't shown as JSON alone."""
    if outcome.error is not None or form.kind == "request":
        return {}
    class_name = form.cleaned_data["class_name"]
    return {
        "plan": plans.plan_of(outcome.value) if form.cleaned_data["explain"] else None,
        "table": None
        if form.cleaned_data["explain"]
        else results.table_of(outcome.value, class_name if form.kind == "find" else ""),
        "count": outcome.value.get("count"),
        "total": len(outcome.value.get("results", ())),
        "class_name": class_name,
    }


def _curl(form: ConsoleForm, api_request: ApiRequest) -> str:
    return command(
        api_request.method,
        api_request.path,
        form.caller_name,
        params=api_request.params,
        body=api_request.body if api_request.method in ("POST", "PUT") else None,
    )
