"""The frame of the admin: its site, the base of its model pages, and pages without a model.

Model pages subclass ``ModelAdmin`` or ``ReadOnlyModelAdmin`` and name their ``section``; other
pages are views with ``@page``. Both appear in the sidebar for those who may see them. Staff and
what they may do are in ``backend.site.staff``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, Final, Literal

from django.conf import settings
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from unfold.admin import ModelAdmin as UnfoldModelAdmin
from unfold.paginator import InfinitePaginator
from unfold.sites import UnfoldAdminSite

from backend.kernel.errors import ServiceError
from backend.kernel.texts.encoding import clean_text
from backend.settings.conf import service_settings
from backend.site.staff import require

Section = Literal["Data", "People", "Server code", "Chain", "Operations", "Staff"]
SECTIONS: Final[tuple[Section, ...]] = (
    *("Data", "People", "Server code"),
    *("Chain", "Operations", "Staff"),
)
_View = Callable[..., HttpResponseBase]
BannerLevel = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page that belongs to no model."""

    route: str
    name: str
    view: _View
    title: str
    section: Section | None
    icon: str
    permission: str | None
    position: int
    is_before_log_in: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the start page: a template, what it shows, and its place among the others.

    With one that ``replaces_menu`` the start page doesn't repeat the menu.
    """

    template: str
    context: dict[str, Any]
    position: int = 50
    replaces_menu: bool = False


_pages: dict[str, Page] = {}
_endpoints: list[URLPattern] = []
_panels: list[Callable[[HttpRequest], Panel | None]] = []
_banners: list[Callable[[HttpRequest], tuple[BannerLevel, str] | None]] = []


def page(
    route: str,
    *,
    name: str,
    permission: str | None,
    title: str = "",
    section: Section | None = None,
    icon: str = "draft",
    position: int = 50,
    is_before_log_in: bool = False,
) -> Callable[[_View], _View]:
    """Put a view at ``/admin/ROUTE`` under the url name ``admin:NAME``.

    Staff without ``permission`` are refused (403); None leaves it to the view, which has to ask
    for one itself. A ``ServiceError`` that the view raises becomes a page that says it. With a
    section the page is in the sidebar. With ``is_before_log_in`` the view decides alone who may see
    the page.
    """

    def register(view: _View) -> _View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if permission is not None:
                require(request, permission)
            try:
                return view(request, *args, **kwargs)
            except ServiceError as error:
                return error_page(request, error)

        _pages[name] = Page(
            route, name, checked, title, section, icon, permission, position, is_before_log_in
        )
        return checked

    return register


def endpoint(route: str, view: _View, *, name: str) -> None:
    """Put a JSON endpoint of pages at ``/admin/ROUTE`` under the url name ``admin:NAME``.

    It checks the rights of its callers itself (``backend.http.staff_api.StaffAPIView``), and
    responds to those who have none with an error instead of the log-in page.
    """
    _endpoints.append(path(route, never_cache(view), name=name))


def banner(
    ask: Callable[[HttpRequest], tuple[BannerLevel, str] | None],
) -> Callable[[HttpRequest], tuple[BannerLevel, str] | None]:
    """Show what the function answers, a level and a text, on top of every page; None is nothing."""
    _banners.append(ask)
    return ask


def start_panel(
    make: Callable[[HttpRequest], Panel | None],
) -> Callable[[HttpRequest], Panel | None]:
    """Show what the function returns on top of the start page; None is nothing.

    The function checks the permissions of the staff user itself.
    """
    _panels.append(make)
    return make


class _Page(TemplateResponse):
    """A page, which may show texts of the deployment's code."""

    @property
    def rendered_content(self) -> str:
        return clean_text(super().rendered_content)


def render(request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
    """A page in the frame of the admin."""
    request.current_app = admin.site.name
    frame = admin.site.each_context(request) | {"title": title}
    return _Page(request, template, frame | context)


def error_page(request: HttpRequest, error: ServiceError) -> TemplateResponse:
    """What the door has refused, as a page with the error's status."""
    response = render(request, "admin/error.html", "This didn't work", error=error)
    response.status_code = error.status
    return response


class Site(UnfoldAdminSite):
    """The admin's site, with the pages of ``@page`` and the banners."""

    index_title = "Start"
    index_template = "admin/start.html"

    def extra_urls(self) -> list[URLPattern]:
        pages = [
            path(
                page.route,
                # As Django's own log-in page.
                never_cache(csrf_protect(page.view))
                if page.is_before_log_in
                else self.admin_view(page.view),
                name=page.name,
            )
            for page in _pages.values()
        ]
        return [*pages, *_endpoints]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        panels = [panel for make in _panels if (panel := make(request)) is not None]
        panels.sort(key=lambda panel: panel.position)
        shows_menu = not any(panel.replaces_menu for panel in panels)
        response: TemplateResponse = super().index(
            request, {**(extra_context or {}), "panels": panels, "shows_menu": shows_menu}
        )
        return response

    def search(self, request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:
        """Unfold's own search of models, in the place of which ``backend.site.search`` is."""
        raise Http404

    def extra_context(self, context: dict[str, Any], request: HttpRequest) -> dict[str, Any]:
        shown = [ask(request) for ask in _banners] if self.has_permission(request) else []
        return context | {"banners": [banner for banner in shown if banner is not None]}


class ModelAdmin(UnfoldModelAdmin):
    """The base of all model pages.

    Lists neither count their rows nor say how many there are. ``section``, ``icon`` (a Material
    symbol) and ``position`` are the place in the sidebar, ``sidebar_title`` the text there if it
    isn't the model's name; the entry is lit for addresses below ``also_at``, too.
    ``empty_text`` says where rows come from, in a list that has none.
    """

    section: ClassVar[Section | None] = None
    icon: ClassVar[str] = "table"
    position: ClassVar[int] = 50
    sidebar_title: ClassVar[str] = ""
    also_at: ClassVar[tuple[str, ...]] = ()
    empty_text: ClassVar[str] = ""
    list_fullwidth = True
    list_filter_submit = True
    show_full_result_count = False
    paginator = InfinitePaginator


class ReadOnlyModelAdmin(ModelAdmin):
    """A read-only model page: nothing is added, changed or deleted, by any user."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def account_links(request: HttpRequest) -> list[dict[str, Any]]:
    """The links of the menu of the staff user's own account."""
    links = [{"title": "Change password", "link": reverse("admin:password_change")}]
    if service_settings.STAFF_SECOND_FACTOR != "off":
        links.append({"title": "Second factor", "link": reverse("admin:second_factor_set_up")})
    return links


def environment_badge(request: HttpRequest) -> list[str]:
    """The badge that says which deployment one is looking at, red where it is the real one."""
    name = settings.ENVIRONMENT
    beginnings = {"prod": "danger", "stag": "warning", "local": "success", "dev": "success"}
    colours = (colour for start, colour in beginnings.items() if name.lower().startswith(start))
    return [name, next(colours, "info")]
