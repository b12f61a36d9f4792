"""Commands in messages and pages can be pasted into a shell as they are."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("backend", "objects", "functions", "chain", "realtime")
# The file may be named; as a command it needs a path, or a Python with the requirements.
BARE = re.compile(r"(?<![\w/.])(?<!python )manage\.py +[a-z-]")


def messages(path: Path) -> Iterator[str]:
    """The texts in a module that aren't docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield str(node.value)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_message_names_a_bare_manage_py(package: str):
    texts = [(path, text) for path in (ROOT / package).rglob("*.py") for text in messages(path)] + [
        (path, path.read_text()) for path in (ROOT / package).rglob("*.html")
    ]
    assert [(str(path), text) for path, text in texts if BARE.search(text)] == []


def test_no_page_names_a_bare_manage_py():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert [page.name for page in pages if BARE.search(page.read_text())] == []


def test_archives_of_the_pages_are_outside_of_the_clone_and_git_ignores_others():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    targets = [
        target
        for page in pages
        for target in re.findall(r"script/manage backup (?:--verify )?([^\s`;]+)", page.read_text())
        if target not in ("FOLDER", "latest") and not target.startswith("--")
    ]
    assert len(targets) >= 4
    assert [target for target in targets if not target.startswith("/")] == []
    subprocess.run(["git", "check-ignore", "-q", "before-update.tar"], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("text", "is_bare"),
    [
        ("run manage.py doctor", True),
        ("`manage.py chain_resume 5 --from-scratch`", True),
        ("python manage.py prepare", False),
        ("./manage.py doctor", False),
        ("beside `manage.py` and named", False),
    ],
)
def test_what_counts_as_bare(text: str, is_bare: bool):
    assert (BARE.search(text) is not None) is is_bare
