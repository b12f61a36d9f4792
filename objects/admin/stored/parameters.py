"""The app's parameters in the admin: a list, and a page to change each.

The form contains the version of the parameter that it shows. If the stored version differs, nothing
is saved, and the page shows the entered value next to the stored one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import READ_ONLY_MASTER
from backend.site.model_admin import page, render
from backend.site.staff import principal_for, require
from objects.admin.browser.cells import Cell, value_cell
from objects.admin.browser.fields import pretty
from objects.admin.people.pages import note
from objects.admin.values import read_json, read_number
from objects.app_config import service
from objects.app_config.service import Config
from objects.core.values import date, kind, normalise_date

VIEW: Final = "objects.view_appconfig"
ADD: Final = "objects.add_appconfig"
CHANGE: Final = "objects.change_appconfig"
DELETE: Final = "objects.delete_appconfig"

Kind = Literal["text", "number", "boolean", "date", "json"]
_KINDS: Final[Mapping[Kind, str]] = {
    "text": "Text",
    "number": "Number",
    "boolean": "True or false",
    "date": "Date",
    "json": "JSON: a list, an object, a typed value, null",
}
_OF_FIELDS: Final[Mapping[str, Kind]] = {
    "String": "text",
    "Number": "number",
    "Boolean": "boolean",
    "Date": "date",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A parameter in the list."""

    name: str
    type: str
    cell: Cell
    is_hidden: bool


@dataclass(slots=True)
class Form:
    """What was entered for a parameter. ``version`` is its state then, empty for a new one."""

    name: str = ""
    kind: Kind = "text"
    text: str = ""
    is_hidden: bool = False
    version: str = ""

    @property
    def rows(self) -> int:
        """How many lines its text has."""
        return min(max(self.text.count("\n") + 1, len(self.text) // 80 + 1, 2), 30)


@page(
    "config/",
    name="config",
    permission=VIEW,
    title="Config",
    section="Data",
    icon="tune",
    position=30,
)
@require_safe
def parameters(request: HttpRequest) -> HttpResponseBase:
    """All parameters."""
    config = service.read(READ_ONLY_MASTER)
    rows = [
        Row(name, kind(value) or "null", value_cell(value), name in config.master_key_only)
        for name, value in sorted(config.params.items())
    ]
    return render(
        request,
        "admin/config/parameters.html",
        "Config",
        rows=rows,
        may_add=request.user.has_perm(ADD),
    )


@page("config/parameter/", name="config_add", permission=ADD)
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponseBase:
    """A new parameter."""
    if request.method != "POST":
        return _show(request, Form(), is_new=True)
    form = _filled(request, request.POST.get("name", "").strip(), "")
    try:
        if _saved(request, form, ADD):
            messages.success(request, f"The parameter {form.name} is there.")
            return HttpResponseRedirect(reverse("admin:config"))
    except ServiceError as error:
        return _show(request, form, is_new=True, error=error)
    return _show(request, form, is_new=True, stored=service.read(READ_ONLY_MASTER))


@page("config/parameter/<str:name>/", name="config_parameter", permission=VIEW)
@require_http_methods(["GET", "HEAD", "POST"])
def parameter(request: HttpRequest, name: str) -> HttpResponseBase:
    """One parameter: changing it, and removing it."""
    if request.method == "POST":
        return _remove(request, name) if "delete" in request.POST else _change(request, name)
    config = _with(name)
    return _show(request, _form(config, name))


def _change(request: HttpRequest, name: str) -> HttpResponseBase:
    require(request, CHANGE)
    form = _filled(request, name, request.POST.get("seen", ""))
    try:
        if _saved(request, form, CHANGE):
            messages.success(request, f"Saved: {name}.")
            return HttpResponseRedirect(reverse("admin:config"))
    except ServiceError as error:
        return _show(request, form, error=error)
    stored = service.read(READ_ONLY_MASTER)
    form.version = stored.state_of(name)
    return _show(request, form, stored=stored)


def _remove(request: HttpRequest, name: str) -> HttpResponseBase:
    require(request, DELETE)
    if "confirm" not in request.POST:
        messages.info(request, "Nothing was deleted: it wasn't confirmed.")
        return HttpResponseRedirect(request.path)
    version = request.POST.get("seen", "")
    body = {"params": {name: {"__op": "Delete"}}}
    try:
        if service.save(principal_for(request.user, DELETE), body, _unless_changed(name, version)):
            note(request, "delete parameter", parameter=name)
            messages.success(request, f"Deleted: {name}.")
            return HttpResponseRedirect(reverse("admin:config"))
    except ServiceError as error:
        return _show(request, _form(_with(name), name), error=error)
    stored = _with(name)
    return _show(request, _form(stored, name), stored=stored)


def _with(name: str) -> Config:
    """The parameters. Raises ``Http404`` without this one."""
    config = service.read(READ_ONLY_MASTER)
    if name not in config.params:
        raise Http404("There is no such parameter.")
    return config


def _saved(request: HttpRequest, form: Form, permission: str) -> bool:
    """Save the form, or return False if the parameter has changed. Raises ``ServiceError``."""
    body = {
        "params": {form.name: _value(form)},
        "masterKeyOnly": {form.name: form.is_hidden},
    }
    unchanged = _unless_changed(form.name, form.version)
    if not service.save(principal_for(request.user, permission), body, unchanged):
        return False
    note(request, "save parameter", parameter=form.name, master_key_only=form.is_hidden)
    return True


def _unless_changed(name: str, version: str) -> Any:
    return lambda stored: stored.state_of(name) == version


def _filled(request: HttpRequest, name: str, version: str) -> Form:
    data = request.POST
    chosen = data.get("kind", "")
    if chosen not in get_args(Kind):
        chosen = "text"
    return Form(
        name,
        cast(Kind, chosen),
        # Browsers send every end of a line as two characters.
        data.get(f"value.{chosen}", "").replace("\r\n", "\n"),
        "hidden" in data,
        version,
    )


def _form(config: Config, name: str) -> Form:
    value = config.params[name]
    chosen = _OF_FIELDS.get(kind(value) or "", "json")
    match chosen:
        case "text":
            text = str(value)
        case "date":
            text = str(cast(Mapping[str, Json], value)["iso"]).removesuffix("Z")
        case _:
            text = pretty(value)
    return Form(name, chosen, text, name in config.master_key_only, config.state_of(name))


def _value(form: Form) -> Json:
    """Return the entered value in wire form. Raises ``InvalidJSON`` or ``IncorrectType``."""
    text = form.text.strip()
    match form.kind:
        case "text":
            return form.text
        case "number":
            return read_number(text)
        case "boolean":
            if text not in ("true", "false"):
                raise InvalidJSON("expected true or false")
            return text == "true"
        case "date":
            return date(normalise_date(text, form.name))
    value = read_json(text)
    if isinstance(value, dict) and "__op" in value:
        raise InvalidJSON("expected a value, not an operation")
    return value


def _show(
    request: HttpRequest,
    form: Form,
    *,
    is_new: bool = False,
    error: ServiceError | None = None,
    stored: Config | None = None,
) -> HttpResponseBase:
    """The form; with what is stored, if that was changed meanwhile."""
    is_there = stored is not None and form.name in stored.params
    response = render(
        request,
        "admin/config/parameter.html",
        "A new parameter" if is_new else f"Parameter {form.name}",
        form=form,
        kinds=_KINDS,
        is_new=is_new,
        error=error,
        is_conflict=stored is not None,
        is_there=is_there,
        stored=pretty(stored.params[form.name]) if stored is not None and is_there else "",
        stored_is_hidden=stored is not None and form.name in stored.master_key_only,
        may_change=request.user.has_perm(ADD if is_new else CHANGE),
        may_delete=not is_new and request.user.has_perm(DELETE),
    )
    response.status_code = error.status if error else 409 if stored is not None else 200
    return response
