"""docs/configuration.md tells of every setting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backend.settings import documentation
from backend.settings.declaration import Area, whole
from backend.settings.documentation import DEFAULTS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "configuration.md").read_text()
# environment.text("NAME", …) and its siblings, wherever the service reads a setting.
READ = re.compile(
    r'environment\.(?:text|whole|flag|choice|words|address|required|binds?)\(\s*"([A-Z_]+)"'
)


def names_read() -> set[str]:
    results = set(DEFAULTS)
    for module in (ROOT / "backend").rglob("*.py"):
        results.update(READ.findall(module.read_text()))
    return results


@pytest.mark.parametrize("name", sorted(names_read()))
def test_a_setting_is_documented(name):
    assert f"`{name}`" in TEXT


def test_nothing_is_documented_that_is_not_there():
    described = set(re.findall(r"`([A-Z][A-Z_]{3,})`", TEXT)) - {"NAME_FILE", "NAME", "INFO"}
    # ``environment.env_file`` reads the latter.
    assert described - names_read() - {"MASTER_KEY", "ENV_FILE"} == set()


def test_the_tables_are_up_to_date():
    assert documentation.page(TEXT) == TEXT, f"run {documentation.COMMAND}"


def test_the_example_is_up_to_date():
    example = documentation.EXAMPLE.read_text()
    assert documentation.example() == example, f"run {documentation.COMMAND}"
    names = re.findall(r"(?m)^#([A-Z][A-Z0-9_]*)=", example)
    assert sorted(names) == sorted(DEFAULTS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_each_declaration_has_one_line_of_documentation(name):
    text = documentation.SETTINGS[name].documentation
    assert text
    assert "\n" not in text
    assert "|" not in text
    assert not text.endswith(".")


def test_a_new_setting_needs_its_declaration_alone():
    """As docs/contributing.md says: the rest follows from the declaration."""

    class Shop(Area):
        title = "Users"
        MAX_CARTS = whole(3, "carts of a user", least=1, most=50)

    assert documentation.table([Shop.MAX_CARTS]).endswith(
        "| `MAX_CARTS` | 3 | carts of a user; 1 to 50 |\n"
    )
    assert (Shop.read(), Shop().MAX_CARTS) == ({"MAX_CARTS": 3}, 3)


def test_a_section_that_the_page_lacks_is_an_error():
    with pytest.raises(ValueError, match="no section ## Keys"):
        documentation.page("# Configuration\n")


@pytest.mark.parametrize(
    ("name", "value"), re.findall(r"(?m)^#([A-Z_]+)=(.+)$", documentation.EXAMPLE.read_text())
)
def test_the_values_of_the_example_are_the_defaults(monkeypatch, name, value):
    setting = documentation.SETTINGS[name]
    monkeypatch.setenv(name, value)
    read = setting.read()
    monkeypatch.setenv(name, "")
    assert read == setting.read()
    assert setting.read() == setting.default


def test_an_empty_line_is_before_each_section():
    assert re.findall(r"(?m)^[^\n]+\n(## .+)$", TEXT) == []
