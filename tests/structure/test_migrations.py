"""Migrations keep what they run: nothing of today's code, which changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIGRATIONS = sorted(ROOT.glob("*/migrations/[0-9]*.py"))
OURS = {path.parent.name for path in ROOT.glob("*/__init__.py")}


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, at any place."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    return {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    } | {
        f"{'.' * node.level}{node.module or ''}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
    }


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: f"{path.parts[-3]}.{path.stem}")
def test_a_migration_imports_nothing_of_the_project(path: Path) -> None:
    names = imported(path)
    assert not {name for name in names if name.startswith(".") or name.split(".")[0] in OURS}
    assert not {name for name in names if "importlib" in name or "pathlib" in name}


def test_all_apps_with_migrations_are_looked_at() -> None:
    assert {path.parts[-3] for path in MIGRATIONS} >= {"objects", "chain", "functions"}
