"""``docs/configuration.md`` and ``.env.example``, from the declarations.

``python -m backend.settings.documentation`` writes both. In ``docs/configuration.md`` it replaces
the table of each section; the text around the tables is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any, Final

from backend.settings.areas.files import Storage
from backend.settings.areas.http import Site
from backend.settings.areas.keys import Secrets
from backend.settings.areas.mail import MailServer
from backend.settings.areas.processes import BASE_DIR, Processes, Servers
from backend.settings.areas.sign_in import Providers
from backend.settings.conf import AREAS
from backend.settings.declaration import LARGEST, Area, Setting

PAGE: Final = BASE_DIR / "docs" / "configuration.md"
EXAMPLE: Final = BASE_DIR / ".env.example"
COMMAND: Final = "python -m backend.settings.documentation"
_HEADER: Final = "| variable | default | |\n|---|---|---|\n"
_HEADING: Final = (
    "# Every setting, switched off and with its default where it has one. Copy the lines that you\n"
    "# need to .env. docs/configuration.md has the same; both are written by\n"
    f"# {COMMAND}\n"
)
_WIDTH: Final = 100
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
ALL_AREAS: Final[tuple[type[Area], ...]] = (
    Secrets,
    *AREAS,
    Site,
    Servers,
    Processes,
    MailServer,
    Providers,
    Storage,
)
SETTINGS: Final[Mapping[str, Setting[Any]]] = {
    name: setting for area in ALL_AREAS for name, setting in area.settings().items()
}
DEFAULTS: Final[Mapping[str, Any]] = {name: setting.default for name, setting in SETTINGS.items()}


def sections() -> dict[str, list[Setting[Any]]]:
    """Return the settings by the title of their section."""
    titles: dict[str, list[Setting[Any]]] = {}
    for area in ALL_AREAS:
        titles.setdefault(area.title, []).extend(area.settings().values())
    return titles


def default_of(setting: Setting[Any]) -> str:
    """Return how the documentation writes the default."""
    default = setting.default
    if setting.shown:
        return setting.shown
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, int):
        number = f"{default:,}" if default >= 10_000 else str(default)
        return f"{number} {setting.unit}".strip()
    if isinstance(default, tuple):
        default = ",".join(default)
    return f"`{default}`" if default else "none"


def bounds_of(setting: Setting[Any]) -> str:
    """Return what the documentation says of the bounds; "" where any number will do."""
    least, most = setting.bounds or (0, LARGEST)
    if most >= LARGEST:
        return f"; at least {least:,}" if least > 1 else ""
    return f"; {least:,} to {most:,}" if least else f"; at most {most:,}"


def table(settings: list[Setting[Any]]) -> str:
    """Return the table of a section."""
    return _HEADER + "".join(
        f"| `{setting.name}` | {default_of(setting)} |"
        f" {setting.documentation}{bounds_of(setting)} |\n"
        for setting in settings
    )


def page(text: str) -> str:
    """Return the page of this text with its tables up to date. Raises ``ValueError`` for a section
    that it doesn't have."""
    for title, settings in sections().items():
        section = re.search(
            rf"(?ms)^(## {re.escape(title)}\n(?:(?!^## |^\|).)*)(?:^\|[^\n]*\n)*", text
        )
        if section is None:
            raise ValueError(f"docs/configuration.md has no section ## {title}.")
        text = text[: section.start()] + section[1] + table(settings) + text[section.end() :]
    return text


def example() -> str:
    """Return the text of ``.env.example``."""
    return _HEADING + "".join(_example_lines())


def _example_lines() -> Iterator[str]:
    for title, settings in sections().items():
        yield f"\n# -- {title} --\n"
        for setting in settings:
            default = default_of(setting)
            value = "" if setting.shown or default == "none" else default.strip("`")
            if value and type(setting.default) is int:
                value = str(setting.default)
            text = _LINK.sub(r"\1", f"{setting.documentation}{bounds_of(setting)}.")
            text += f" In {setting.unit}." if setting.unit else ""
            text += "" if value else f" Default: {default}."
            text += f" Or {setting.name}_FILE, a file with it." if setting.secret else ""
            text = (text[0].upper() + text[1:]).replace("`", "")
            yield "\n" + "".join(f"# {line}\n" for line in wrap(text, _WIDTH))
            yield f"#{setting.name}={value}\n"


def main() -> None:
    """Write both files."""
    texts = {PAGE: page(PAGE.read_text()), EXAMPLE: example()}
    for path, text in texts.items():
        path.write_text(text)
        print(path.relative_to(BASE_DIR))


if __name__ == "__main__":
    main()
