"""Server functions in the admin: their list, and a form to call them.

Staff who may see functions see all that is registered; those who may call them do so from a form,
with the master key, without a session, or as a user. The call goes to
``functions.runtime.runner`` with what a client would send, and the page shows what a client would
get.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_http_methods, require_safe

from backend.kernel.errors import InvalidJSON, ObjectNotFound, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import CLIENT, Principal
from backend.kernel.request_context import current
from backend.kernel.texts.encoding import encode_json
from backend.site.model_admin import page, render
from backend.site.staff import principal_for, require
from functions.admin import call_form, descriptions
from functions.admin.call_form import Input
from functions.runtime import runner
from functions.runtime.registry import Function, find_function, registry
from functions.runtime.values import NO_RESULT
from objects.admin.curl import CALLERS, Caller, command
from objects.admin.operations.log_pages import VIEW as VIEW_LOGS
from objects.admin.operations.log_pages import address_of
from objects.admin.people.pages import note
from objects.definitions import registry as class_registry
from objects.users.accounts.directory import user_named
from objects.users.accounts.impersonation import as_user

VIEW: Final = "functions.view_function"
CALL: Final = "functions.call_function"
_LONGEST = 256  # characters of what is asked for
_MOST_SHOWN = 100_000  # characters of a result
_NOT_CALLED: Final = "Nothing was called: see what is marked below."


@page(
    "code/functions/",
    name="code_functions",
    permission=VIEW,
    title="Functions",
    section="Server code",
    icon="function",
    position=10,
)
@require_safe
def functions(request: HttpRequest) -> HttpResponseBase:
    """List registered functions, triggers and jobs, or those that contain a text."""
    text = request.GET.get("q", "").strip()[:_LONGEST]
    sections = {
        name: [row for row in rows if row.has(text)]
        for name, rows in (
            ("functions", descriptions.functions()),
            ("triggers", descriptions.triggers()),
            ("jobs", descriptions.jobs()),
        )
    }
    return render(
        request,
        "admin/functions/functions.html",
        "Functions, triggers, jobs",
        text=text,
        class_names={table.class_name for table in class_registry.all_classes()},
        may_see_classes=request.user.has_perm("objects.view_storedobject"),
        may_see_jobs=request.user.has_perm("functions.view_jobstatus"),
        may_call=request.user.has_perm(CALL),
        **sections,
    )


@dataclass
class Form:
    """The form of one function, as it is shown."""

    inputs: list[Input]
    caller: Caller
    user: str = ""
    more: str = ""
    more_error: str = ""
    user_error: str = ""
    params: dict[str, Json] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        return bool(self.more_error or self.user_error or any(item.error for item in self.inputs))


@dataclass(frozen=True)
class Outcome:
    """The response that a client would have received: a result or an error."""

    text: str
    length: int
    error: ServiceError | None
    ms: float
    who: str
    request_id: str
    log_address: str

    @property
    def is_cut(self) -> bool:
        return self.length > len(self.text)


@page("code/functions/<str:name>/", name="code_function", permission=VIEW)
@require_http_methods(["GET", "HEAD", "POST"])
def function_page(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show a function, with a form to call it for staff with the permission."""
    function = find_function(name)
    if function is None:
        raise Http404("There is no such function.")
    is_python = name in registry.functions
    form, outcome = _new_form(function), None
    if request.method == "POST":
        require(request, CALL)
        form = _filled(function, request.POST)
        if "call" in request.POST and not form.is_wrong:
            outcome = _called(request, function, form)
    is_example = request.method != "POST" or form.is_wrong
    params = call_form.example(function.parameters) if is_example else form.params
    response = render(
        request,
        "admin/functions/function.html",
        f"Function {name}",
        function=function,
        is_python=is_python,
        facts=descriptions.described(function) if is_python else None,
        form=form,
        callers=CALLERS,
        may_call=request.user.has_perm(CALL),
        outcome=outcome,
        is_example=is_example,
        curl=command("POST", f"/functions/{quote(name, safe='')}", form.caller, body=params),
        complaint=_NOT_CALLED if form.is_wrong else "",
    )
    response.status_code = 400 if form.is_wrong else 200
    return response


def _new_form(function: Function) -> Form:
    requirements = function.requirements
    caller: Caller = (
        "master" if requirements.master else "user" if requirements.asks_for_user else "public"
    )
    return Form(call_form.inputs(function.parameters), caller)


def _filled(function: Function, data: Any) -> Form:
    params, inputs = call_form.read(function.parameters, data)
    caller = data.get("caller", "")
    form = Form(
        inputs,
        cast(Caller, caller) if caller in CALLERS else "public",
        user=data.get("user", "").strip()[:_LONGEST],
        more=data.get(call_form.MORE, ""),
    )
    try:
        form.params = {**params, **call_form.read_more(form.more)}
    except InvalidJSON as error:
        form.more_error = error.message
    return form


def _principal(request: HttpRequest, form: Form) -> tuple[Principal, str]:
    """Return the principal for the call and its label. Raises ``ObjectNotFound``."""
    if form.caller == "user":
        return as_user(user_named(form.user) or form.user)
    if form.caller == "master":
        return principal_for(request.user, CALL), CALLERS["master"]
    return CLIENT, CALLERS["public"]


def _called(request: HttpRequest, function: Function, form: Form) -> Outcome | None:
    """Call the function, or return None and set the form's error for an unknown user."""
    try:
        principal, who = _principal(request, form)
    except ObjectNotFound as error:
        form.user_error = error.message
        return None
    note(
        request,
        "call function",
        function=function.name,
        caller=principal.user_id or form.caller,
    )
    begin, text, failure = perf_counter(), "", None
    try:
        result = runner.call(function.name, form.params, principal)
        text = "" if result is NO_RESULT else _text(result)
    except ServiceError as error:
        failure = error
    ms = round((perf_counter() - begin) * 1000, 1)
    request_id = current().request_id
    may_see_logs = request.user.has_perm(VIEW_LOGS)
    return Outcome(
        text[:_MOST_SHOWN],
        len(text),
        failure,
        ms,
        who,
        request_id,
        address_of(request_id) if may_see_logs else "",
    )


def _text(result: Any) -> str:
    return msgspec.json.format(encode_json(result), indent=2).decode()
