"""The forms of the console: a find, a pipeline, any request. Each is a request to the API."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, cast
from urllib.parse import quote

from django import forms

from backend.http.bodies.parsers import decode_json, decode_object
from backend.http.views import METHODS
from backend.kernel.errors import InvalidJSON, ObjectNotFound
from backend.kernel.principal import CLIENT, MASTER, Principal
from backend.settings.conf import service_settings
from objects.admin.console.requests import ApiRequest
from objects.admin.curl import CALLERS, Caller
from objects.users.accounts.directory import user_named
from objects.users.accounts.impersonation import as_user

Kind = Literal["find", "aggregate", "request", "sql"]
_LONGEST_TEXT: Final = 1_000_000  # characters
_LONGEST: Final = 2_000
_EXPLAIN: Final = "explain"


class _Json(forms.CharField):
    """Text that is JSON of one kind, or empty."""

    def __init__(self, name: str, type_: type, example: str) -> None:
        super().__init__(required=False, max_length=_LONGEST_TEXT, strip=True)
        self._name, self._type, self.example = name, type_, example

    def clean(self, value: Any) -> str:
        text = cast(str, super().clean(value))
        if text:
            try:
                decoded = decode_json(text, self._name)
            except InvalidJSON as error:
                raise forms.ValidationError(error.message) from None
            if not isinstance(decoded, self._type):
                raise forms.ValidationError(f"This has to be like {self.example}.")
        return text


class ConsoleForm(forms.Form):
    """The part that all have: in whose place. ``kind`` names the form."""

    kind: ClassVar[Kind]
    caller = forms.ChoiceField(choices=[*CALLERS.items()], initial="master")
    user = forms.CharField(required=False, max_length=256)

    principal: Principal
    who: str

    def clean(self) -> dict[str, Any]:
        """Find the caller. A user is chosen by id, name or address."""
        data = cast("dict[str, Any]", super().clean())
        self.principal, self.who = CLIENT, CALLERS["public"]
        if data.get("caller") == "master":
            self.principal, self.who = MASTER, CALLERS["master"]
        elif data.get("caller") == "user":
            name = data.get("user", "")
            try:
                self.principal, self.who = as_user(user_named(name) or name)
            except ObjectNotFound as error:
                self.add_error("user", error.message)
        return data

    @property
    def caller_name(self) -> Caller:
        return cast("Caller", self.cleaned_data["caller"])

    def request(self) -> ApiRequest:
        """Return the request of a valid form."""
        raise NotImplementedError


class FindForm(ConsoleForm):
    """A find."""

    kind = "find"
    class_name = forms.CharField(max_length=_LONGEST)
    where = _Json("where", dict, '{"score": {"$gt": 10}}')
    order = forms.CharField(required=False, max_length=_LONGEST)
    keys = forms.CharField(required=False, max_length=_LONGEST)
    include = forms.CharField(required=False, max_length=_LONGEST)
    limit = forms.IntegerField(required=False, min_value=0, max_value=100_000, initial=100)
    skip = forms.IntegerField(required=False, min_value=0)
    count = forms.BooleanField(required=False)
    explain = forms.BooleanField(required=False)

    def request(self) -> ApiRequest:
        data = self.cleaned_data
        names = ("where", "order", "keys", "include", "limit", "skip")
        params = {name: str(data[name]) for name in names if data[name] not in ("", None)}
        params |= {"count": "1"} if data["count"] else {}
        params |= {_EXPLAIN: "true"} if data["explain"] else {}
        return ApiRequest("GET", f"/classes/{quote(data['class_name'], safe='')}", params)


class AggregateForm(ConsoleForm):
    """A pipeline over a class."""

    kind = "aggregate"
    class_name = forms.CharField(max_length=_LONGEST)
    pipeline = _Json("pipeline", list, '[{"$group": {"_id": "$city", "n": {"$sum": 1}}}]')
    explain = forms.BooleanField(required=False)

    def request(self) -> ApiRequest:
        data = self.cleaned_data
        params = {"pipeline": data["pipeline"] or "[]"}
        params |= {_EXPLAIN: "true"} if data["explain"] else {}
        return ApiRequest("GET", f"/aggregate/{quote(data['class_name'], safe='')}", params)


class RequestForm(ConsoleForm):
    """Any request to the API."""

    kind = "request"
    method = forms.ChoiceField(choices=[(name, name) for name in METHODS])
    path = forms.CharField(max_length=10_000)
    body = _Json("body", dict, '{"title": "A text"}')

    def clean_path(self) -> str:
        """Return the path after the mount, which people may write or leave out."""
        text = cast(str, self.cleaned_data["path"])
        path = text if text.startswith("/") else f"/{text}"
        mount = service_settings.MOUNT_PATH
        return path.removeprefix(mount) if path.startswith(f"{mount}/") else path

    def request(self) -> ApiRequest:
        data = self.cleaned_data
        body = decode_object(data["body"]) if data["body"] else {}
        return ApiRequest(data["method"], data["path"], {}, body)


class SqlForm(forms.Form):
    """A query in SQL."""

    statement = forms.CharField(max_length=100_000, strip=False)


FORMS: Final[dict[Kind, type[ConsoleForm]]] = {
    form.kind: form for form in (FindForm, AggregateForm, RequestForm)
}
