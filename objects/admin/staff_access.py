"""What staff may see and change on the pages of a class: permissions and principals.

A staff permission opens whole classes. Single objects are left out only while a staff user browses
in the place of a user.

``@class_page`` puts a view at ``/admin/data/CLASS/…``. It is called with a ``Place``: the class,
the staff user's permissions, and the principals to read and to write with. POST is refused unless
the page names the permission that it takes; errors of the object service that a view doesn't
handle become an error page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Literal

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse

from backend.kernel.errors import InvalidClassName, ObjectNotFound
from backend.kernel.principal import CLIENT, READ_ONLY_MASTER, Principal
from backend.logs.setup import get_logger
from backend.site.model_admin import error_page as error_page
from backend.site.model_admin import page, render
from backend.site.staff import principal_for
from objects.core.names import ClassName, is_class_name
from objects.definitions import registry
from objects.definitions.models import StoredObject
from objects.sql.tables import ClassTable
from objects.users.accounts.impersonation import as_user

StaffAction = Literal["view", "add", "change", "delete"]
Subject = Literal["objects", "class"]

_ACTING: Final = "data_acting"
log = get_logger("admin")
PUBLIC: Final = "*"
"""In place of a user's id: callers who aren't logged in."""


def permission(action: StaffAction, class_name: ClassName | None) -> str:
    """The staff permission to do this to objects of the class.

    A class that is a model of an application (the classes of people, for example) has the
    permissions of the model.
    """
    model = (registry.model_of(class_name) if class_name else None) or StoredObject
    return f"{model._meta.app_label}.{action}_{model._meta.model_name}"


def class_permission(action: StaffAction) -> str:
    """The staff permission to do this to classes themselves."""
    return f"objects.{action}_objectclass"


@dataclass(frozen=True, slots=True)
class Acting:
    """A user (or the public) in whose place a staff user looks at data, or also writes."""

    principal: Principal
    name: str
    user_id: str
    writes: bool


def acting_of(request: HttpRequest) -> Acting | None:
    """Return the user in whose place this staff user browses, or None."""
    chosen = request.session.get(_ACTING)
    if not isinstance(chosen, dict):
        return None
    user_id, writes = str(chosen.get("user")), bool(chosen.get("writes"))
    if user_id == PUBLIC:
        return Acting(CLIENT, "callers who aren't logged in", PUBLIC, writes)
    try:
        principal, name = as_user(user_id)
    except ObjectNotFound:
        stop_acting(request)
        return None
    return Acting(principal, name, user_id, writes)


def act(request: HttpRequest, user_id: str, *, writes: bool) -> None:
    """Start browsing in a user's place. Raises ``ObjectNotFound``."""
    if user_id != PUBLIC:
        as_user(user_id)
    request.session[_ACTING] = {"user": user_id, "writes": writes}


def stop_acting(request: HttpRequest) -> None:
    """Stop browsing in a user's place."""
    request.session.pop(_ACTING, None)


@dataclass(frozen=True, slots=True)
class Place:
    """A class with the permissions and principals of a staff user."""

    request: HttpRequest
    table: ClassTable
    acting: Acting | None

    @property
    def class_name(self) -> ClassName:
        return self.table.class_name

    def may(self, action: StaffAction, subject: Subject = "objects") -> bool:
        """Whether the page offers this: staff permissions, and no writing in a user's place
        unless that was asked for."""
        if subject == "class":
            held = self.request.user.has_perm(class_permission(action))
            return bool(held and (action == "view" or self.acting is None))
        if not self.request.user.has_perm(permission(action, self.class_name)):
            return False
        return action == "view" or self.acting is None or self.acting.writes

    def require(self, action: StaffAction, subject: Subject = "objects") -> None:
        """Raise ``PermissionDenied`` (403) unless ``may``."""
        if not self.may(action, subject):
            raise PermissionDenied

    @property
    def reader(self) -> Principal:
        """The principal that reads objects: the chosen user, or the read-only master key."""
        return self.acting.principal if self.acting else READ_ONLY_MASTER

    def writer(self, action: StaffAction, subject: Subject = "objects") -> Principal:
        """Return the principal that writes, and log the write.

        Raises ``PermissionDenied`` unless ``may``.
        """
        self.require(action, subject)
        log.info(
            "staff write",
            staff=self.request.user.get_username(),
            action=action,
            subject=subject,
            class_name=self.class_name,
            acting=self.acting.user_id if self.acting else None,
        )
        if self.acting is not None and subject == "objects":
            return self.acting.principal
        name = class_permission(action) if subject == "class" else None
        return principal_for(self.request.user, name or permission(action, self.class_name))

    def url(self, name: str, *args: str) -> str:
        """The address of another page of the class."""
        return reverse(f"admin:data_{name}", args=(self.class_name, *args))

    def render(self, template: str, title: str, **context: Any) -> TemplateResponse:
        """A page of the class; ``template`` is a name below ``admin/data``."""
        may = {action: self.may(action) for action in ("view", "add", "change", "delete")}
        may_class = {
            action: self.may(action, "class") for action in ("view", "add", "change", "delete")
        }
        frame = {
            "place": self,
            "class_name": self.class_name,
            "schema": self.table.schema,
            "may": may,
            "may_class": may_class,
            "acting": self.acting,
            "sections": _sections(self),
        }
        return render(self.request, f"admin/data/{template}.html", title, **(frame | context))


def _sections(place: Place) -> list[tuple[str, str, bool]]:
    """The tabs of a class: name, address, whether it is the page shown."""
    tabs = []
    if place.may("view"):
        tabs.append(("Objects", place.url("objects")))
    if place.may("view", "class"):
        tabs += [
            ("Fields", place.url("fields")),
            ("Permissions", place.url("permissions")),
            ("Indexes", place.url("indexes")),
        ]
    path = place.request.path
    own = {address for _, address in tabs}
    at = path if path in own else place.url("objects")
    return [(name, address, address == at) for name, address in tabs]


View = Callable[..., HttpResponseBase]


def class_page(
    route: str, name: str, *, subject: Subject = "objects", post: StaffAction | None = None
) -> Callable[[View], View]:
    """Put ``view(place, **parts of the route)`` at ``/admin/data/CLASS/ROUTE``.

    Viewing requires the permission to view the subject; POST also requires ``post``.
    """

    def register(view: View) -> View:
        @page(f"data/<str:class_name>/{route}", name=f"data_{name}", permission=None)
        @wraps(view)
        def shown(request: HttpRequest, class_name: str, **parts: str) -> HttpResponseBase:
            place = place_of(request, class_name, subject)
            if request.method == "POST":
                if post is None:
                    return HttpResponseNotAllowed(("GET", "HEAD"))
                place.require(post, subject)
            elif request.method not in ("GET", "HEAD"):
                return HttpResponseNotAllowed(("GET", "HEAD", "POST"))
            return view(place, **parts)

        return shown

    return register


def place_of(request: HttpRequest, name: str, subject: Subject) -> Place:
    """Return a class with the rights of the staff user.

    Raises ``PermissionDenied`` for those who may not view it, and ``InvalidClassName`` (404).
    """
    class_name = name if is_class_name(name) else None
    needed = class_permission("view") if subject == "class" else permission("view", class_name)
    if not request.user.has_perm(needed):
        raise PermissionDenied
    table = None
    if class_name is not None:
        registry.forget(class_name)
        table = registry.find(class_name)
    if table is None:
        raise InvalidClassName("There is no such class.", status=404)
    return Place(request, table, acting_of(request))
