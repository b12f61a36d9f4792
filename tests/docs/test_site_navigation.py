"""mkdocs.yml lists every page, and links from pages to source files survive the build."""

from __future__ import annotations

import logging
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose ``!ENV`` is MkDocs' own."""


Loader.add_constructor("!ENV", lambda loader, node: loader.construct_sequence(node))
SITE = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)


def pages_of(entry: object) -> list[str]:
    """The pages of a navigation entry: a path, or a list or mapping of entries."""
    if isinstance(entry, str):
        return [entry]
    assert isinstance(entry, list | dict)
    children = entry.values() if isinstance(entry, dict) else entry
    return [page for child in children for page in pages_of(child)]


def test_the_navigation_has_every_page_once():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(pages_of(SITE["nav"])) == sorted(pages)


def test_the_decisions_index_lists_every_area():
    index = (DOCS / "decisions" / "index.md").read_text()
    areas = {path.name for path in (DOCS / "decisions").glob("*.md")} - {"index.md"}
    assert {name for name in areas if f"({name})" not in index} == set()


def test_the_site_loads_nothing_from_other_hosts():
    assert SITE["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & set(SITE)
    assert SITE["plugins"] == ["search"]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = spec_from_file_location("source_links", ROOT / SITE["hooks"][0])
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rendered(hook: ModuleType, markdown: str, source_url: str, page: str = "index.md") -> str:
    config = SimpleNamespace(docs_dir=str(DOCS), extra={"source_url": source_url})
    file = SimpleNamespace(src_uri=page)
    return hook.on_page_markdown(markdown, SimpleNamespace(file=file), config, None)


@pytest.mark.parametrize(
    ("page", "markdown", "linked", "plain"),
    [
        ("a.md", "[p](../SECURITY.md)", "[p](https://x.org/r/blob/main/SECURITY.md)", "p"),
        ("a.md", "[`d`](../script/)", "[`d`](https://x.org/r/blob/main/script)", "`d`"),
        ("d/a.md", "[p](../../README.md#s)", "[p](https://x.org/r/blob/main/README.md#s)", "p"),
        ("d/a.md", "[p](../rest.md#s)", "[p](../rest.md#s)", "[p](../rest.md#s)"),
        ("a.md", "`[p](../README.md)`", "`[p](../README.md)`", "`[p](../README.md)`"),
        ("a.md", "```\n[p](../X)\n```\n", "```\n[p](../X)\n```\n", "```\n[p](../X)\n```\n"),
    ],
)
def test_a_link_out_of_the_documentation(hook, page, markdown, linked, plain):
    assert rendered(hook, markdown, "https://x.org/r/blob/main/", page) == linked
    assert rendered(hook, markdown, "", page) == plain


@pytest.mark.parametrize("path", ["../missing.py", "../../README.md"])
def test_a_link_to_a_file_that_is_missing_is_a_warning(hook, caplog, path):
    with caplog.at_level(logging.WARNING):
        assert rendered(hook, f"[p]({path})", "") == f"[p]({path})"
    assert f"index.md links to {path}" in caplog.text
