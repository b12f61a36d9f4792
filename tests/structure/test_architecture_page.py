"""docs/architecture.md draws the code as it is."""

import re

import pytest

from tests.structure.rooms import APPS, PAGE, ROOT, rooms, with_tables


def test_the_tables_of_rooms_are_up_to_date():
    """``python -m tests.structure.rooms`` writes them."""
    page = PAGE.read_text()
    assert page == with_tables(page)


@pytest.mark.parametrize("app", APPS)
def test_every_app_has_a_table(app):
    assert f"<!-- rooms of {app} -->" in PAGE.read_text()


@pytest.mark.parametrize("app", APPS)
def test_every_room_says_what_it_holds_in_one_line(app):
    for package, text in rooms(app):
        assert text.endswith("."), package
        assert len(text) <= 110, package


def test_the_floors_are_those_of_the_contract():
    drawn = re.search(r"<!-- floors -->\n```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    contract = re.search(
        r'name = "Floors"\ntype = "layers"\nlayers = \[\n(.*?)\n\]',
        (ROOT / "pyproject.toml").read_text(),
        re.DOTALL,
    )
    assert drawn is not None
    assert contract is not None
    names = re.findall(r"backend\.\w+|\b(?:objects|chain|functions|realtime)\b", contract[1])
    floors = [line.split("   ")[0] for line in drawn[1].splitlines()]
    assert (
        re.findall(r"backend\.\w+|\b(?:objects|chain|functions|realtime)\b", "\n".join(floors))
        == names
    )
