"""The tables of rooms in docs/architecture.md, from the docstrings of the packages.

``python -m tests.structure.rooms`` writes them into the page.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
APPS = ("backend", "objects", "functions", "chain", "realtime")
_LEFT_OUT = {"migrations", "commands", "formats", "en"}
_TABLE = re.compile(r"(<!-- rooms of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rooms(app: str) -> list[tuple[str, str]]:
    """The packages of an app, each with the first line of its docstring."""
    observed = []
    for init in sorted((ROOT / app).rglob("__init__.py")):
        package = init.parent.relative_to(ROOT)
        if package == Path(app) or _LEFT_OUT & set(package.parts):
            continue
        text = ast.get_docstring(ast.parse(init.read_text())) or ""
        observed.append((str(package), text.split("\n\n")[0].replace("\n", " ")))
    return observed


def with_tables(page: str) -> str:
    """The page with the tables as they are now."""

    def table(match: re.Match[str]) -> str:
        lines = ["| room | what you find here |", "|---|---|"]
        for package, text in rooms(match[2]):
            lines.append(f"| `{package}` | {re.sub('``', '`', text)} |")
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return _TABLE.sub(table, page)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
