"""The documentation in the admin: the pages of the folder ``docs``, and the search in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from backend.settings.areas.processes import BASE_DIR
from backend.site.model_admin import page, render
from backend.site.search import Result, search_source

FOLDER: Final = BASE_DIR / "docs"
VIEW: Final = "backend.view_documentation"
_PAGE_LINK: Final = re.compile(r"([\w-]+)\.md(#[\w-]*)?")
_IMAGE_LINK: Final = re.compile(r"images/([\w.-]+)")
_HEADING: Final = re.compile(r"(#{1,6}) +(.+?) *")
_TITLE: Final = 3  # tokens
_LISTED: Final = 3
"""The level of headings down to which they are listed beside the page."""
_NO_ANCHOR: Final = re.compile(r"[^\w\s-]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page, and the name of its place in the page; "" for the title."""

    text: str
    anchor: str
    level: int


def is_there() -> bool:
    """Return whether this deployment has the folder."""
    return FOLDER.is_dir()


@lru_cache(maxsize=1)
def headings() -> dict[str, tuple[Heading, ...]]:
    """Return the headings of each page, its title first, by the name of the page.

    They are read once: the files change with the release alone.
    """
    return {
        path.stem: tuple(_headings_of(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.md"))
    }


def link_to(name: str, anchor: str = "") -> str:
    """Return the address of a page in the admin."""
    address = reverse("admin:documentation_page", args=(name,))
    return f"{address}#{anchor}" if anchor else address


def content(name: str) -> SafeString:
    """Return a page, without its title, as HTML."""
    tokens = _tokens(name)
    _set_anchors(tokens)
    _correct_links(tokens)
    # The files are the release's own.
    return mark_safe(_markdown().renderer.render(tokens[_TITLE:], _markdown().options, {}))


def inline(text: str) -> SafeString:
    """Return a line of the documentation, such as that of a setting, as HTML."""
    (token,) = _markdown().parseInline(text)
    _correct_links([token])
    # Declarations of settings are the release's own.
    return mark_safe(_markdown().renderer.render([token], _markdown().options, {}))


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """Return a line of the documentation without its marks."""
    (token,) = _markdown().parseInline(text)
    return "".join(child.content for child in token.children or ())


@page(
    "docs/",
    name="documentation",
    permission=VIEW,
    title="Documentation",
    section="Operations",
    icon="menu_book",
    position=95,
)
@require_safe
def contents(request: HttpRequest) -> HttpResponseBase:
    """All pages by their titles."""
    pages = [(titles[0].text, link_to(name)) for name, titles in headings().items() if titles]
    return render(
        request, "admin/documentation.html", "Documentation", pages=sorted(pages), content=""
    )


@page("docs/<slug:name>/", name="documentation_page", permission=VIEW)
@require_safe
def documentation_page(request: HttpRequest, name: str) -> HttpResponseBase:
    """A page of the documentation."""
    if not headings().get(name):
        raise Http404("There is no such page.")
    title, *others = headings()[name]
    sections = [heading for heading in others if heading.level <= _LISTED]
    return render(
        request, "admin/documentation.html", title.text, content=content(name), sections=sections
    )


@page("docs/images/<str:name>", name="documentation_image", permission=VIEW)
@require_safe
def image(request: HttpRequest, name: str) -> HttpResponseBase:
    """A picture of a page."""
    path: Path | None = next(
        (path for path in (FOLDER / "images").glob("*") if path.name == name), None
    )
    if path is None:
        raise Http404("There is no such picture.")
    return FileResponse(path.open("rb"))


@search_source("Documentation", icon="menu_book", position=80, permission=VIEW)
def search_documentation(request: HttpRequest, text: str) -> Iterator[Result]:
    """Pages by their titles, and their sections."""
    for name, (title, *sections) in headings().items():
        yield Result(title.text, link_to(name))
        for section in sections:
            yield Result(section.text, link_to(name, section.anchor), title.text)


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _tokens(name: str) -> list[Token]:
    return _markdown().parse((FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def _headings_of(text: str) -> Iterator[Heading]:
    """Yield the headings of a page; parsing the whole of it would take many times as long."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and (match := _HEADING.fullmatch(line)):
            level, title = len(match[1]), plain(match[2])
            yield Heading(title, "" if level == 1 else _anchor(title), level)


def _set_anchors(tokens: Sequence[Token]) -> None:
    for token, inline_token in pairwise(tokens):
        if token.type == "heading_open":
            title = "".join(child.content for child in inline_token.children or ())
            token.attrSet("id", _anchor(title))


def _anchor(text: str) -> str:
    return re.sub(r"[\s-]+", "-", _NO_ANCHOR.sub("", text.lower()).strip())


def _correct_links(tokens: Sequence[Token]) -> None:
    """Let links between pages lead to pages of the admin."""
    for token in tokens:
        for name in ("href", "src"):
            target: Any = token.attrGet(name)
            if not isinstance(target, str):
                continue
            if match := _PAGE_LINK.fullmatch(target):
                token.attrSet(name, link_to(match[1], (match[2] or "")[1:]))
            elif match := _IMAGE_LINK.fullmatch(target):
                token.attrSet(name, reverse("admin:documentation_image", args=(match[1],)))
        _correct_links(token.children or ())
